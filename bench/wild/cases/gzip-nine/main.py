"""A map layer: a large document, compressed for the way."""
import os
import random

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Route

generator = random.Random(1)
LAYER = "[%s]" % ",".join(
    '{"type":"Point","coordinates":[%.6f,%.6f]}' % (generator.uniform(5, 15), generator.uniform(47, 55))
    for _ in range(2500)
)


async def layer(request):
    return Response(LAYER, media_type="application/json")


app = Starlette(
    routes=[Route("/", layer)],
    middleware=[Middleware(GZipMiddleware, compresslevel=int(os.environ.get("GZIP_LEVEL", "9")))],
)
