from django.db import connection
from django.http import HttpResponse


def index(request):
    with connection.cursor() as cursor:
        cursor.execute("select sum(n) from generate_series(1, 100) as n")
        (total,) = cursor.fetchone()
    return HttpResponse(f"{total} votes\n", content_type="text/plain")
