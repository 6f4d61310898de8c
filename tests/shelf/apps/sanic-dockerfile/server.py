from sanic import Sanic
from sanic.response import json

app = Sanic("feed")


@app.get("/")
async def feed(request):
    return json({"entries": []})
