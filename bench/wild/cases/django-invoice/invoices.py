"""An invoice as a page."""
from datetime import date, timedelta
from decimal import Decimal

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.template import engines
from django.urls import path

PAGE = """{% load l10n %}<html><body><h1>Invoice {{ number }} of {{ day|date:"j F Y" }}</h1>
<table>{% for line in lines %}<tr class="{% cycle 'odd' 'even' %}">
<td>{{ forloop.counter }}</td><td>{{ line.what|title }}</td><td>{{ line.on|date:"Y-m-d" }}</td>
<td>{{ line.pieces }}</td><td>{{ line.price|floatformat:2 }}</td><td>{{ line.total|floatformat:"2g" }}</td>
</tr>{% empty %}<tr><td>no lines</td></tr>{% endfor %}</table>
<p>{{ lines|length }} lines, {{ total|floatformat:"2g" }} in all</p></body></html>"""

settings.configure(
    SECRET_KEY="not-a-secret",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    LOGGING_CONFIG=None,
)
django.setup()
template = engines["django"].from_string(PAGE)


def invoice(request):
    start = date(2026, 3, 1)
    lines = [
        {
            "what": f"hours of support {n}",
            "on": start + timedelta(days=n % 28),
            "pieces": n % 7 + 1,
            "price": Decimal("79.50"),
            "total": Decimal("79.50") * (n % 7 + 1),
        }
        for n in range(80)
    ]
    total = sum(line["total"] for line in lines)
    return HttpResponse(template.render({"number": 2026041, "day": start, "lines": lines, "total": total}, request))


urlpatterns = [path("", invoice)]
application = get_wsgi_application()
