from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

engine = create_engine("sqlite://", connect_args={"check_same_thread": False}, poolclass=StaticPool)


@asynccontextmanager
async def lifespan(app):
    with engine.begin() as connection:
        connection.execute(text("create table stock (name text, pieces integer)"))
        connection.execute(text("insert into stock values ('bolts', 120), ('nuts', 80)"))
    yield


app = FastAPI(lifespan=lifespan)


def session():
    with Session(engine) as opened:
        yield opened


@app.get("/")
def stock(opened=Depends(session)):
    rows = opened.execute(text("select name, pieces from stock order by name"))
    return {name: pieces for name, pieces in rows}
