import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Draws for a lottery, at a pace that the auditors can follow. */
public class Server {
    /** Gives out permits at even distances; whoever comes early sleeps. */
    static final class Pace {
        private final long distanceNs;
        private long next = System.nanoTime();

        Pace(double perSecond) {
            distanceNs = (long) (1e9 / perSecond);
        }

        private synchronized long reserve() {
            long now = System.nanoTime();
            long mine = Math.max(now, next);
            next = mine + distanceNs;
            return mine - now;
        }

        void acquire() throws InterruptedException {
            TimeUnit.NANOSECONDS.sleep(reserve());
        }
    }

    static final Pace PACE = new Pace(Double.parseDouble(System.getenv().getOrDefault("DRAWS_PER_SECOND", "100")));

    static void answer(HttpExchange exchange) throws IOException {
        try {
            PACE.acquire();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return;
        }
        byte[] body = ("number " + (System.nanoTime() % 49 + 1) + "\n").getBytes(StandardCharsets.UTF_8);
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
        server.setExecutor(Executors.newFixedThreadPool(32));
        server.start();
    }
}
