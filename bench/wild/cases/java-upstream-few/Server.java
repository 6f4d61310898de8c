import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Quotes of an insurer: each asks the rating engine. */
public class Server {
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    static final HttpRequest RATE = HttpRequest.newBuilder(
            URI.create(System.getenv().getOrDefault("RATING_URL", "http://127.0.0.1:9424/"))).build();

    static void answer(HttpExchange exchange) throws IOException {
        byte[] body;
        int status = 200;
        try {
            HttpResponse<String> rated = CLIENT.send(RATE, HttpResponse.BodyHandlers.ofString());
            body = ("{\"premium\": " + rated.body().length() + "}\n").getBytes(StandardCharsets.UTF_8);
        } catch (IOException | InterruptedException e) {
            status = 502;
            body = (e + "\n").getBytes(StandardCharsets.UTF_8);
        }
        exchange.sendResponseHeaders(status, body.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 200);
        server.createContext("/", Server::answer);
        server.setExecutor(Executors.newFixedThreadPool(48));
        server.start();
    }
}
