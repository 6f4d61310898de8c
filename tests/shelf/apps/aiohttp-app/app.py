import os

from aiohttp import web

routes = web.RouteTableDef()


@routes.get("/")
async def index(request):
    return web.json_response({"rooms": 3})


def main():
    app = web.Application()
    app.add_routes(routes)
    web.run_app(app, port=int(os.environ.get("PORT", "8080")))


if __name__ == "__main__":
    main()
