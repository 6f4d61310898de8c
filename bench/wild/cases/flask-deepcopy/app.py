"""Orders of a shop, written out by a description of their fields."""
import copy
import os
from datetime import date, timedelta

from flask import Flask, jsonify

COPY_FIELDS = os.environ.get("COPY_FIELDS", "1") == "1"
app = Flask(__name__)


class Field:
    def __init__(self, name, convert=str, default=None):
        self.name = name
        self.convert = convert
        self.default = default

    def output(self, record):
        value = record.get(self.name, self.default)
        return None if value is None else self.convert(value)


class Nested:
    def __init__(self, name, model):
        self.name = name
        self.model = model

    def output(self, record):
        return marshal(record[self.name], self.model)


def marshal(record, model):
    """Return what the model names of a record, or of each of a list."""
    if isinstance(record, list):
        return [marshal(one, model) for one in record]
    fields = copy.deepcopy(model) if COPY_FIELDS else model  # a field may be changed while it is written
    return {name: field.output(record) for name, field in fields.items()}


ADDRESS = {"street": Field("street"), "town": Field("town"), "country": Field("country", default="NL")}
LINE = {"article": Field("article"), "number": Field("number", int), "price": Field("price", float)}
ORDER = {
    "id": Field("id", int),
    "day": Field("day", date.isoformat),
    "address": Nested("address", ADDRESS),
    "lines": Nested("lines", LINE),
}
ORDERS = [
    {
        "id": n,
        "day": date(2024, 1, 1) + timedelta(days=n),
        "address": {"street": f"Canal {n}", "town": "Utrecht"},
        "lines": [{"article": f"A-{n}-{k}", "number": k + 1, "price": 2.5 * k} for k in range(4)],
    }
    for n in range(30)
]


@app.get("/")
def orders():
    return jsonify(orders=marshal(ORDERS, ORDER))


@app.get("/orders/<int:number>")
def order(number):
    return jsonify(marshal(ORDERS[number], ORDER))
