"""Prices in the visitor's currency; what went wrong can be looked at later, with all variables."""
import logging
import os
import traceback
from collections import deque
from decimal import Decimal

import falcon

LOCALS = os.environ.get("REPORT_LOCALS", "1") == "1"
RATES = {(code, day): Decimal(day % 97 + 3) / 7 for code in ("USD", "GBP", "SEK", "PLN") for day in range(700)}
CATALOGUE = [{"sku": n, "cents": 100 + n * 7} for n in range(300)]


class RecentErrors(logging.Handler):
    """Keeps the last reports for the page of the operators."""

    def __init__(self):
        super().__init__()
        self.reports = deque(maxlen=20)

    def emit(self, record):
        error = traceback.TracebackException(*record.exc_info, capture_locals=LOCALS)
        self.reports.append(f"{record.getMessage()}\n{''.join(error.format())}")


log = logging.getLogger("prices")
log.propagate = False
log.addHandler(RecentErrors())


def rate(rates, code, day):
    return rates[code, day]


def convert(catalogue, rates, code, day):
    today = rate(rates, code, day)
    return [{"sku": item["sku"], "cents": int(item["cents"] * today)} for item in catalogue]


class Prices:
    def on_get(self, request, response):
        try:
            items = convert(CATALOGUE, RATES, "CZK", 12)  # no rate came for it this week
        except KeyError:
            log.exception("no rate for %s, showing euros", "CZK")
            items = CATALOGUE
        response.media = {"items": items[:20]}


app = falcon.App()
app.add_route("/", Prices())
