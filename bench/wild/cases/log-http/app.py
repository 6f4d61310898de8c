"""A shop whose log goes to a log service."""
import http.client
import logging
import logging.handlers
import os
import queue

from flask import Flask

SERVICE = os.environ.get("LOG_SERVICE", "127.0.0.1:9208")


class ServiceHandler(logging.Handler):
    """Posts each record."""

    def emit(self, record: logging.LogRecord) -> None:
        connection = http.client.HTTPConnection(SERVICE, timeout=10)
        connection.request("POST", "/", self.format(record).encode())
        connection.getresponse().read()
        connection.close()


log = logging.getLogger("shop")
log.setLevel(logging.INFO)
log.propagate = False
if os.environ.get("LOG_QUEUE") == "1":
    records: queue.Queue = queue.Queue(10_000)
    logging.raiseExceptions = False  # what does not fit is dropped
    log.addHandler(logging.handlers.QueueHandler(records))
    logging.handlers.QueueListener(records, ServiceHandler()).start()
else:
    log.addHandler(ServiceHandler())
app = Flask(__name__)


@app.get("/")
def basket():
    log.info("basket shown")
    return {"basket": []}
