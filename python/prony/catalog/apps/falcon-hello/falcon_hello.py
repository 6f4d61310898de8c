"""The smallest Falcon application, over WSGI."""

import falcon


class HelloResource:
    def on_get(self, request, response):
        response.content_type = falcon.MEDIA_TEXT
        response.text = "Hello F1!"


app = falcon.App()
app.add_route("/", HelloResource())
