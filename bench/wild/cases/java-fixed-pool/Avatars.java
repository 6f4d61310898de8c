// Avatars, from the store of pictures.
import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.Executors;

public class Avatars {
    static final String STORE = System.getenv().getOrDefault("STORE_URL", "http://127.0.0.1:9222/");

    static byte[] picture() throws java.io.IOException {
        HttpURLConnection store = (HttpURLConnection) new URL(STORE).openConnection();
        try (InputStream reply = store.getInputStream()) {
            return reply.readAllBytes();
        }
    }

    public static void main(String[] words) throws Exception {
        int threads = Integer.parseInt(System.getenv().getOrDefault("THREADS", "4"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 512);
        server.setExecutor(Executors.newFixedThreadPool(threads));
        server.createContext("/", exchange -> {
            byte[] page = picture();
            exchange.sendResponseHeaders(200, page.length);
            exchange.getResponseBody().write(page);
            exchange.close();
        });
        server.start();
    }
}
