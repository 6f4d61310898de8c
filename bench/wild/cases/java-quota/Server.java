import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.concurrent.Executors;

/** Receipts with a chain of digests. */
public class Server {
    static void answer(HttpExchange exchange) throws IOException {
        byte[] digest = "receipt".getBytes(StandardCharsets.UTF_8);
        try {
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            for (int i = 0; i < 4000; i++) {
                digest = sha.digest(digest);
            }
        } catch (NoSuchAlgorithmException e) {
            throw new IOException(e);
        }
        byte[] body = (HexFormat.of().formatHex(digest) + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, body.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 200);
        server.createContext("/", Server::answer);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
