"""An API with tracing; the collector is another process."""
import os

import requests
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

COLLECTOR = os.environ.get("COLLECTOR_URL", "http://127.0.0.1:9207/")


class HttpExporter(SpanExporter):
    """Posts spans as text, as exporters to a cloud do."""

    def __init__(self) -> None:
        self.session = requests.Session()

    def export(self, spans):
        self.session.post(COLLECTOR, data="\n".join(span.name for span in spans), timeout=10)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.session.close()


processors = {"simple": SimpleSpanProcessor, "batch": BatchSpanProcessor}
provider = TracerProvider()
provider.add_span_processor(processors[os.environ.get("SPAN_PROCESSOR", "simple")](HttpExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("bank")
app = FastAPI()


@app.get("/")
async def balance():
    with tracer.start_as_current_span("balance"), tracer.start_as_current_span("lookup"):
        return {"balance": 100}
