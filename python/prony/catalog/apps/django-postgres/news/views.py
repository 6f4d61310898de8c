from django.db.models import Count
from django.shortcuts import render
from news.models import Article, Author, Comment, Section, Site


def front_page(request):
    """Render the front page with 15 queries: five of its own, and two for each of its five articles.

    Author and comments are asked for article by article, as pages do that nobody has tuned.
    """
    articles = Article.objects.order_by("-published")[:5]
    stories = [
        {"article": article, "author": article.author, "comments": article.comment_set.count()}
        for article in articles
    ]
    page = {
        "site": Site.objects.get(pk=1),
        "sections": list(Section.objects.annotate(articles=Count("article")).order_by("name")),
        "stories": stories,
        "comments": list(Comment.objects.order_by("-pk")[:5]),
        "authors": Author.objects.count(),
    }
    return render(request, "front_page.html", page)
