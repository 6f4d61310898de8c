from django.urls import path
from news.views import front_page

urlpatterns = [
    path("", front_page),
    path("archive", front_page, {"number": 20}),
    path("letters", front_page, {"comments": 200}),
]
