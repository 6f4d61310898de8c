import falcon


class Health:
    def on_get(self, request, response):
        response.media = {"healthy": True}


api = falcon.App()
api.add_route("/", Health())
