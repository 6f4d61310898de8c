import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.concurrent.Executors;
import java.util.logging.FileHandler;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** The shortest way between two stops of a town's trams. */
public class Routes {
    private static final Logger LOG = Logger.getLogger("routes");
    private static final int STOPS = 60;
    private static final int[][] MINUTES = new int[STOPS][STOPS];

    static {
        for (int a = 0; a < STOPS; a++) {
            for (int b = 0; b < STOPS; b++) {
                MINUTES[a][b] = Math.abs(a - b) < 4 || (a * b) % 17 == 3 ? 2 + (a * 7 + b * 3) % 9 : -1;
            }
        }
    }

    private static int shortest(int from, int to) {
        int[] best = new int[STOPS];
        boolean[] done = new boolean[STOPS];
        java.util.Arrays.fill(best, Integer.MAX_VALUE);
        best[from] = 0;
        for (int step = 0; step < STOPS; step++) {
            int next = -1;
            for (int stop = 0; stop < STOPS; stop++) {
                if (!done[stop] && (next < 0 || best[stop] < best[next])) next = stop;
            }
            if (best[next] == Integer.MAX_VALUE) break;
            done[next] = true;
            LOG.fine("stop " + next + " is reached after " + best[next] + " minutes");
            for (int stop = 0; stop < STOPS; stop++) {
                int by = MINUTES[next][stop];
                if (by >= 0 && best[next] + by < best[stop]) {
                    best[stop] = best[next] + by;
                    LOG.finer("better: stop " + stop + " by way of " + next);
                }
            }
        }
        return best[to];
    }

    private static void answer(HttpExchange exchange) throws IOException {
        LOG.fine("request " + exchange.getRequestURI());
        byte[] body = ("{\"minutes\":" + shortest(0, STOPS - 1) + "}").getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        System.setProperty("java.util.logging.SimpleFormatter.format", "%1$tF %1$tT.%1$tL %4$s %2$s: %5$s%n");
        Level level = Level.parse(System.getenv().getOrDefault("LOG_LEVEL", "FINER"));
        FileHandler file = new FileHandler(Files.createTempFile("routes", ".log").toString(), 50_000_000, 1);
        file.setFormatter(new SimpleFormatter());
        file.setLevel(level);
        LOG.setUseParentHandlers(false);
        LOG.setLevel(level);
        LOG.addHandler(file);

        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.createContext("/", Routes::answer);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.start();
    }
}
