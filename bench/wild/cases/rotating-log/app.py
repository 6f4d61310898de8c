"""Orders of a canteen, with a log in small files of which many are kept."""
import json
import logging
import logging.handlers
import os
import tempfile

import bottle

folder = tempfile.mkdtemp(prefix="canteen-log-")
handler = logging.handlers.RotatingFileHandler(
    os.path.join(folder, "orders.log"),
    maxBytes=4096,
    backupCount=int(os.environ.get("LOG_KEEP", "9000")),
)
handler.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(levelname)s %(name)s: %(message)s"))
log = logging.getLogger("orders")
log.setLevel(logging.DEBUG)
log.addHandler(handler)

MENU = {"soup": 350, "pasta": 620, "salad": 480, "coffee": 190}
app = bottle.Bottle()


@app.get("/")
def order():
    log.debug("request from %s with headers %s", bottle.request.remote_addr, dict(bottle.request.headers))
    lines = [{"dish": dish, "cents": cents, "vat": cents * 9 // 109} for dish, cents in MENU.items()]
    for line in lines:
        log.debug("line %s", json.dumps(line))
    total = sum(line["cents"] for line in lines)
    log.info("order of %d lines taken, %d cents, till 3, paid by card, ticket printed", len(lines), total)
    return {"lines": lines, "total": total}
