"""A customer's page: what other services know of the customer is asked when it is needed."""
import os
from functools import cached_property

import requests
from flask import Flask, request

CUSTOMERS = os.environ.get("CUSTOMERS_URL", "http://127.0.0.1:9511/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=50))
lazy = property if os.environ.get("LAZY") == "property" else cached_property
app = Flask(__name__)


class Customer:
    def __init__(self, number: int) -> None:
        self.number = number

    @lazy
    def profile(self) -> bytes:
        reply = session.get(CUSTOMERS, params={"customer": self.number}, timeout=10)
        reply.raise_for_status()
        return reply.content

    @property
    def greeting(self) -> str:
        return f"Customer {self.number}"


@app.get("/")
def page():
    customer = Customer(request.args.get("customer", 17, type=int))
    return {"greeting": customer.greeting, "profile": len(customer.profile)}


@app.get("/health")
def health():
    return "ok"
