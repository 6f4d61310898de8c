// Rates of exchange, from the bank.
import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.Executors;

public class Rates {
    static final String BANK = System.getenv().getOrDefault("BANK_URL", "http://127.0.0.1:9221/");

    static int ask() throws java.io.IOException {
        HttpURLConnection bank = (HttpURLConnection) new URL(BANK).openConnection();
        try (InputStream reply = bank.getInputStream()) {
            return reply.readAllBytes().length;
        }
    }

    // Two at once would be confused, somebody thought.
    static synchronized int askAlone() throws java.io.IOException {
        return ask();
    }

    public static void main(String[] words) throws Exception {
        boolean free = "1".equals(System.getenv("UNLOCKED"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 512);
        server.setExecutor(Executors.newFixedThreadPool(64));
        server.createContext("/", exchange -> {
            byte[] page = ("{\"bytes\": " + (free ? ask() : askAlone()) + "}\n").getBytes();
            exchange.sendResponseHeaders(200, page.length);
            exchange.getResponseBody().write(page);
            exchange.close();
        });
        server.start();
    }
}
