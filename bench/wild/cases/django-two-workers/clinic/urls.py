from django.urls import path

from clinic import views

urlpatterns = [path("", views.free_slots)]
