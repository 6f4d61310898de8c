import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A basket: stock and price are asked of another service, at the same time. */
public class Basket {
    private static final String SERVICE = System.getenv().getOrDefault("SERVICE_URL", "http://127.0.0.1:9514/");
    private static final ExecutorService IO =
        Executors.newFixedThreadPool(Integer.parseInt(System.getenv().getOrDefault("IO_THREADS", "4")));

    private static int ask(String what) {
        try {
            HttpURLConnection connection = (HttpURLConnection) new URL(SERVICE + "?what=" + what).openConnection();
            connection.setReadTimeout(10_000);
            try (InputStream in = connection.getInputStream()) {
                return in.readAllBytes().length;
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void basket(HttpExchange exchange) throws IOException {
        CompletableFuture<Integer> stock = CompletableFuture.supplyAsync(() -> ask("stock"), IO);
        CompletableFuture<Integer> price = CompletableFuture.supplyAsync(() -> ask("price"), IO);
        byte[] body;
        int status = 200;
        try {
            body = ("{\"stock\":" + stock.join() + ",\"price\":" + price.join() + "}").getBytes(StandardCharsets.UTF_8);
        } catch (RuntimeException e) {
            body = e.toString().getBytes(StandardCharsets.UTF_8);
            status = 502;
        }
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        System.setProperty("http.maxConnections", "100");
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.createContext("/", Basket::basket);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
