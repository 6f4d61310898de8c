from django.conf import settings
from django.http import JsonResponse
from django.urls import path

from hours.models import Timecard


def report(request):
    cards = Timecard.objects.order_by("id")[:60]
    if settings.JOIN:
        cards = cards.select_related("person", "project")
    rows = [{"person": c.person.name, "project": c.project.name, "hours": c.hours} for c in cards]
    return JsonResponse({"rows": rows})


urlpatterns = [path("", report)]
