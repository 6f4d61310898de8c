"""A shop of one file."""

import bottle


@bottle.get("/")
def index():
    return "shop"


app = bottle.default_app()
