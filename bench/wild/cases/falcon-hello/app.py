"""Greetings."""
import falcon


class Greeting:
    def on_get(self, request, response, name="world"):
        response.media = {"hello": name}


class Health:
    def on_get(self, request, response):
        response.text = "ok"


app = falcon.App()
app.add_route("/", Greeting())
app.add_route("/{name}", Greeting())
app.add_route("/health", Health())
