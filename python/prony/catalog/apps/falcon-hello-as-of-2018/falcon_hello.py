"""The smallest Falcon application, as Falcon was in 2018."""

import falcon


class HelloResource:
    def on_get(self, request, response):
        response.content_type = falcon.MEDIA_TEXT
        response.body = "Hello F1!"


app = falcon.API()
app.add_route("/", HelloResource())
