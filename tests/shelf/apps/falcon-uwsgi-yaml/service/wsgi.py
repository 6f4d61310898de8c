import falcon


class Version:
    def on_get(self, request, response):
        response.media = {"version": 7}


application = falcon.App()
application.add_route("/", Version())
