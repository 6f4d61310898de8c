"""The smallest page of Starlette."""
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def hello(request):
    return PlainTextResponse("hello")


app = Starlette(routes=[Route("/", hello)])
