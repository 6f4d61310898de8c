from django.db import models


class Project(models.Model):
    name = models.CharField(max_length=50)

    class Meta:
        db_table = "nplus1_project"


class Person(models.Model):
    name = models.CharField(max_length=50)

    class Meta:
        db_table = "nplus1_person"


class Timecard(models.Model):
    person = models.ForeignKey(Person, on_delete=models.CASCADE)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    hours = models.IntegerField()

    class Meta:
        db_table = "nplus1_timecard"
