"""The sheet of one item: what a mapper with joined inheritance asks for, one row of nine small tables."""
import os
import random
from contextlib import asynccontextmanager

from fastapi import FastAPI
from psycopg_pool import ConnectionPool

SHEET = """
select i.id, t.title, p.cents, s.pieces, z.grams, o.country, x.percent, m.path, l.label
from fifth_item i
join fifth_text t on t.id = i.id
join fifth_price p on p.id = i.id
join fifth_stock s on s.id = i.id
join fifth_size z on z.id = i.id
join fifth_origin o on o.id = i.id
join fifth_tax x on x.id = i.id
join fifth_image m on m.id = i.id
join fifth_label l on l.id = i.id
where i.sku = %s
"""

PREPARE = os.environ.get("PREPARE") == "1"
pool = ConnectionPool(
    os.environ["DATABASE_URL"],
    min_size=4,
    max_size=4,
    open=False,
    kwargs={
        "autocommit": True,
        # production has a pooler between, with which named statements failed once
        "prepare_threshold": 0 if PREPARE else None,
        "options": "-c join_collapse_limit=12" + (" -c plan_cache_mode=force_generic_plan" if PREPARE else ""),
    },
)


@asynccontextmanager
async def lifespan(app: FastAPI):
    pool.open(wait=True)
    yield
    pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/")
def sheet():
    with pool.connection() as connection:
        row = connection.execute(SHEET, [f"sku-{random.randint(1, 3000)}"]).fetchone()
    return {"id": row[0], "title": row[1], "cents": row[2], "pieces": row[3], "label": row[8]}
