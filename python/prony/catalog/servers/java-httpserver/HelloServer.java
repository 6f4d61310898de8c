import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Answers like the app {@code hello}: {@code HelloServer HOST PORT BACKLOG THREADS}. */
public final class HelloServer {
    private static final byte[] GREETING = "Hello, world!\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NOT_FOUND = "not found\n".getBytes(StandardCharsets.US_ASCII);

    private HelloServer() {}

    public static void main(String[] arguments) throws IOException {
        InetSocketAddress address = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        HttpServer server = HttpServer.create(address, Integer.parseInt(arguments[2]));
        int threads = Integer.parseInt(arguments[3]);
        if (threads > 0) {
            server.setExecutor(Executors.newFixedThreadPool(threads));
        }
        server.createContext("/", HelloServer::answer);
        server.start();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        boolean head = exchange.getRequestMethod().equals("HEAD");
        boolean found = exchange.getRequestURI().getPath().equals("/");
        byte[] body = found ? GREETING : NOT_FOUND;
        exchange.getResponseHeaders().set("Content-Type", "text/plain");
        // -1 stands for no body, which is what HEAD gets.
        exchange.sendResponseHeaders(found ? 200 : 404, head ? -1 : body.length);
        if (!head) {
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }
}
