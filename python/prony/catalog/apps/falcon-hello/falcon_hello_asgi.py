"""The smallest Falcon application, over ASGI."""

import falcon
import falcon.asgi


class HelloResource:
    async def on_get(self, request, response):
        response.content_type = falcon.MEDIA_TEXT
        response.text = "Hello F1!"


app = falcon.asgi.App()
app.add_route("/", HelloResource())
