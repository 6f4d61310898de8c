"""A page of a dashboard, in a container with half a CPU."""
from jinja2 import Template
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

ROWS = [{"name": f"queue {n}", "waiting": n * 7 % 31, "failed": n % 3} for n in range(250)]
PAGE = Template(
    "<table>{% for row in rows %}<tr><td>{{ row.name|e }}<td>{{ row.waiting }}<td>"
    "{{ 'none' if not row.failed else row.failed }}{% endfor %}</table>"
)


async def dashboard(request):
    return HTMLResponse(PAGE.render(rows=ROWS))


app = Starlette(routes=[Route("/", dashboard)])
