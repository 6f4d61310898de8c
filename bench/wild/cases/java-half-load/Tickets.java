import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/** Tickets with a seal: a chain of digests. */
public class Tickets {
    private static final AtomicLong NUMBER = new AtomicLong(1);
    private static final int ROUNDS = 100;

    private static String seal(long number) {
        try {
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            byte[] digest = Long.toString(number).getBytes(StandardCharsets.UTF_8);
            for (int round = 0; round < ROUNDS; round++) digest = sha.digest(digest);
            return HexFormat.of().formatHex(digest);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void ticket(HttpExchange exchange) throws IOException {
        long number = NUMBER.getAndIncrement();
        String text = "{\"number\":" + number + ",\"seal\":\"" + seal(number) + "\"}";
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.createContext("/", Tickets::ticket);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
