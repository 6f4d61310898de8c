from django.http import JsonResponse
from django.urls import path


async def status(request):
    return JsonResponse({"status": "up"})


urlpatterns = [path("", status)]
