"""Tasks of a to-do list, with SQLAlchemy."""
import os

from fastapi import FastAPI
from sqlalchemy import create_engine, text

engine = create_engine(
    os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg2://"), pool_size=40
)
app = FastAPI()


def tasks() -> dict[str, int]:
    with engine.connect() as connection:
        return {"tasks": connection.execute(text("select 5 from pg_sleep(0.05)")).scalar_one()}


if os.environ.get("PLAIN_DEF") == "1":
    app.get("/")(tasks)
else:

    @app.get("/")
    async def list_tasks():
        return tasks()
