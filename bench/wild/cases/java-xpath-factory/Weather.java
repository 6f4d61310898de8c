import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.xpath.XPath;
import javax.xml.xpath.XPathExpression;
import javax.xml.xpath.XPathFactory;
import org.w3c.dom.Document;

/** The weather of a station, out of the XML that it sends. */
public class Weather {
    private static final String XML = "<station id='06260'><name>De Bilt</name><height>1.9</height>"
        + "<now><temperature>11.4</temperature><wind>5.1</wind><from>SW</from><rain>0.2</rain></now>"
        + "<today><high>13.0</high><low>6.2</low><sun>4.5</sun></today></station>";
    private static final String[] FIELDS = {
        "/station/name", "/station/height", "/station/now/temperature", "/station/now/wind",
        "/station/now/from", "/station/now/rain", "/station/today/high", "/station/today/low",
    };
    private static final boolean REUSE = "1".equals(System.getenv("XPATH_REUSE"));

    private static final ThreadLocal<DocumentBuilder> BUILDER = ThreadLocal.withInitial(Weather::newBuilder);
    private static final ThreadLocal<Map<String, XPathExpression>> COMPILED = ThreadLocal.withInitial(() -> {
        Map<String, XPathExpression> all = new LinkedHashMap<>();
        for (String field : FIELDS) all.put(field, compile(field));
        return all;
    });

    private static DocumentBuilder newBuilder() {
        try {
            return DocumentBuilderFactory.newInstance().newDocumentBuilder();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static XPathExpression compile(String field) {
        try {
            XPath xpath = XPathFactory.newInstance().newXPath();
            return xpath.compile(field + "/text()");
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static String page() throws Exception {
        DocumentBuilder builder = REUSE ? BUILDER.get() : newBuilder();
        Document document = builder.parse(new ByteArrayInputStream(XML.getBytes(StandardCharsets.UTF_8)));
        StringBuilder out = new StringBuilder("{");
        for (String field : FIELDS) {
            XPathExpression expression = REUSE ? COMPILED.get().get(field) : compile(field);
            String name = field.substring(field.lastIndexOf('/') + 1);
            if (out.length() > 1) out.append(',');
            out.append('"').append(name).append("\":\"").append(expression.evaluate(document)).append('"');
        }
        return out.append('}').toString();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        byte[] body;
        int status = 200;
        try {
            body = page().getBytes(StandardCharsets.UTF_8);
        } catch (Exception e) {
            body = e.toString().getBytes(StandardCharsets.UTF_8);
            status = 500;
        }
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.createContext("/", Weather::answer);
        server.setExecutor(Executors.newFixedThreadPool(20));
        server.start();
    }
}
