// Catalogue of parts, held in memory.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

public class Catalog {
    record Part(int number, String name, Map<String, String> facts) {}

    static List<Part> parts(int count) {
        List<Part> parts = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            Map<String, String> facts = new HashMap<>();
            for (String key : new String[] {"colour", "maker", "shelf"}) {
                facts.put(key, key + " of part " + number);
            }
            parts.add(new Part(number, "part " + number, facts));
        }
        return parts;
    }

    static byte[] page(List<Part> parts, int from) {
        StringBuilder page = new StringBuilder();
        for (int next = 0; next < 300; next++) {
            Part part = parts.get((from + next) % parts.size());
            page.append(String.join(", ", part.name(), part.facts().toString())).append('\n');
        }
        return page.toString().getBytes();
    }

    public static void main(String[] words) throws Exception {
        List<Part> parts = parts(Integer.parseInt(System.getenv().getOrDefault("PARTS", "55000")));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 512);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            byte[] page = page(parts, (int) (System.nanoTime() % parts.size()));
            exchange.sendResponseHeaders(200, page.length);
            exchange.getResponseBody().write(page);
            exchange.close();
        });
        server.start();
    }
}
