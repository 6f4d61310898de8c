"""Previews of articles: each page asks the content service for one."""
import asyncio
import os

from tornado.httpclient import AsyncHTTPClient
from tornado.web import Application, RequestHandler

CONTENT = os.environ.get("CONTENT_URL", "http://127.0.0.1:9210/")
if "MAX_CLIENTS" in os.environ:
    AsyncHTTPClient.configure(None, max_clients=int(os.environ["MAX_CLIENTS"]))


class Preview(RequestHandler):
    async def get(self):
        reply = await AsyncHTTPClient().fetch(CONTENT, request_timeout=15)
        self.write({"length": len(reply.body)})


async def main():
    Application([("/", Preview)]).listen(int(os.environ.get("PORT", "8000")), "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
