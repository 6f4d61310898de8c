"""Samples of a laboratory, from PostgreSQL."""
import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import psycopg2.pool
import tornado.web

SQL = "select 17, 'sample' from pg_sleep(0.025)"
THREADS = int(os.environ.get("DB_THREADS", "0"))


class SQLConnectionHandler:
    """Connections to the database, and how queries are run on them."""

    def __init__(self, dsn: str, most: int) -> None:
        self.pool = psycopg2.pool.ThreadedConnectionPool(1, most, dsn)

    def execute_fetchone(self, sql: str):
        connection = self.pool.getconn()
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchone()
        finally:
            self.pool.putconn(connection)


class SampleHandler(tornado.web.RequestHandler):
    def initialize(self, database, executor):
        self.database = database
        self.executor = executor

    async def get(self):
        if self.executor is None:
            number, kind = self.database.execute_fetchone(SQL)
        else:
            loop = asyncio.get_running_loop()
            number, kind = await loop.run_in_executor(self.executor, self.database.execute_fetchone, SQL)
        self.set_header("Content-Type", "application/json")
        self.write(json.dumps({"number": number, "kind": kind}))


class HealthHandler(tornado.web.RequestHandler):
    def get(self):
        self.write("ok")


async def main() -> None:
    database = SQLConnectionHandler(os.environ["DATABASE_URL"], max(4, THREADS))
    executor = ThreadPoolExecutor(THREADS) if THREADS else None
    resources = {"database": database, "executor": executor}
    app = tornado.web.Application([("/", SampleHandler, resources), ("/health", HealthHandler)])
    app.listen(int(os.environ.get("PORT", "8888")), "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
