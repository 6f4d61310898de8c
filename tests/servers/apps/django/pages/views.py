"""A page that counts the visits of a session."""

from django.shortcuts import render


def index(request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    return render(request, "pages/index.html", {"visits": request.session["visits"]})
