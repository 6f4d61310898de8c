import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Says whether a permit was granted, as the register has it: Clerk.java PORT. */
public class Clerk {
    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        String register = System.getenv().getOrDefault("REGISTER_URL", "http://127.0.0.1:9530/");
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/", exchange -> {
            int length;
            try {
                HttpRequest question = HttpRequest.newBuilder(URI.create(register)).build();
                length = client.send(question, HttpResponse.BodyHandlers.ofByteArray()).body().length;
            } catch (InterruptedException error) {
                throw new IOException(error);
            }
            byte[] body = ("{\"permit\": \"granted\", \"bytes\": " + length + "}").getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        String threads = System.getenv("SERVER_THREADS");
        if (threads != null) {
            server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(threads)));
        }
        server.start();
    }
}
