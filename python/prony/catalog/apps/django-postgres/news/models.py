from django.db import models


class Site(models.Model):
    name = models.TextField()
    motto = models.TextField()


class Section(models.Model):
    name = models.TextField()


class Author(models.Model):
    name = models.TextField()


class Article(models.Model):
    section = models.ForeignKey(Section, models.PROTECT)
    author = models.ForeignKey(Author, models.PROTECT)
    title = models.TextField()
    lead = models.TextField()
    published = models.DateTimeField(db_index=True)


class Comment(models.Model):
    article = models.ForeignKey(Article, models.CASCADE)
    name = models.TextField()
    text = models.TextField()
