from django.db.models import Count
from django.shortcuts import render
from news.models import Article, Author, Comment, Section, Site


def front_page(request, number=5, comments=5):
    """Render a page with five queries of its own, and two for each of its articles: 15 on the front page.

    Author and comments are asked for article by article, as pages do that nobody has tuned.
    """
    articles = Article.objects.order_by("-published")[:number]
    stories = [
        {"article": article, "author": article.author, "comments": article.comment_set.count()}
        for article in articles
    ]
    page = {
        "site": Site.objects.get(pk=1),
        "sections": list(Section.objects.annotate(articles=Count("article")).order_by("name")),
        "stories": stories,
        "comments": list(Comment.objects.order_by("-pk")[:comments]),
        "authors": Author.objects.count(),
    }
    return render(request, "front_page.html", page)
