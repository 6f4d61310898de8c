import asyncio

import tornado.web
from tornado.options import define, options, parse_command_line

define("port", default=8888, type=int)
define("address", default="0.0.0.0")


class Main(tornado.web.RequestHandler):
    def get(self):
        self.write("board\n")


async def main():
    parse_command_line()
    app = tornado.web.Application([(r"/", Main)])
    app.listen(options.port, options.address)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
