"""Parcel tracking: asks the carrier's API for each parcel."""
import os

import aiohttp
from aiohttp import web

CARRIER = os.environ.get("CARRIER_URL", "http://127.0.0.1:9401/")
SESSION = web.AppKey("session", aiohttp.ClientSession)


async def session(app: web.Application):
    connector = aiohttp.TCPConnector(
        limit=300, limit_per_host=int(os.environ.get("PER_HOST", "6")), keepalive_timeout=60
    )
    async with aiohttp.ClientSession(connector=connector) as client:
        app[SESSION] = client
        yield


async def track(request: web.Request) -> web.Response:
    async with request.app[SESSION].get(CARRIER) as reply:
        steps = await reply.read()
    return web.json_response({"parcel": "JD0141", "steps": len(steps)})


def main() -> None:
    app = web.Application()
    app.cleanup_ctx.append(session)
    app.router.add_get("/", track)
    web.run_app(
        app,
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "8080")),
        access_log=None,
        print=None,
    )


if __name__ == "__main__":
    main()
