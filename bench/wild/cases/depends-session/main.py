"""Items of a catalogue, with a session for each request."""
import os
from typing import Annotated

from fastapi import Depends, FastAPI
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker

engine = create_engine(
    os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://"),
    pool_size=int(os.environ.get("DB_POOL", "8")),
    max_overflow=0,
)
SessionLocal = sessionmaker(engine)
app = FastAPI()


def get_session():
    session = SessionLocal()
    try:
        yield session
    finally:
        session.close()


@app.get("/")
def items(session: Annotated[Session, Depends(get_session)]):
    session.execute(text("select pg_sleep(0.1)"))
    return {"items": 3}
