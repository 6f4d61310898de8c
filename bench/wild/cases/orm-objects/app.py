"""All templates of a service, as a list of names."""
import os

from flask import Flask
from sqlalchemy import DateTime, String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Template(Base):
    __tablename__ = "orm_objects_templates"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String)
    kind: Mapped[str] = mapped_column(String)
    subject: Mapped[str] = mapped_column(String)
    content: Mapped[str] = mapped_column(String)
    created: Mapped[object] = mapped_column(DateTime)
    version: Mapped[int]


engine = create_engine(os.environ["DATABASE_URL"], pool_size=8)
app = Flask(__name__)


@app.get("/")
def templates():
    with Session(engine) as session:
        if os.environ.get("NAMES_ONLY") == "1":
            return {"names": list(session.scalars(select(Template.name)))}
        return {"names": [template.name for template in session.scalars(select(Template))]}
