"""The app `django-postgres`: how many queries its page makes, and that they yield what its contract says."""

import json
import subprocess
import sys
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from prony.catalog.schema.apps import BUILT_IN_APPS
from prony.catalog.schema.loader import load_catalog

FOLDER = BUILT_IN_APPS / "django-postgres"

# In a process of its own, since Django can be set up only once; on SQLite, which is asked the same queries.
SCRIPT = """
import json, sys
from datetime import datetime, timedelta, timezone
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["news"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    ROOT_URLCONF="news.urls",
    SECRET_KEY="not a secret",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    USE_TZ=True,
)
import django

django.setup()
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from news.models import Article, Author, Comment, Section, Site

with connection.schema_editor() as editor:
    for model in (Site, Section, Author, Article, Comment):
        editor.create_model(model)

first = datetime(2026, 1, 1, tzinfo=timezone.utc)
Site.objects.create(name="The Daily Brake", motto="All the news that bears a load")
for name in ("Motors", "Bridges", "Weather", "Letters"):
    Section.objects.create(name=name)
Author.objects.bulk_create(Author(name=f"Author {n}") for n in range(1, 21))
Article.objects.bulk_create(
    Article(
        section_id=1 + n % 4,
        author_id=1 + n * 7 % 20,
        title=f"Article {n}",
        lead=f"What article {n} has to tell, in one line.",
        published=first + timedelta(hours=n),
    )
    for n in range(1, 501)
)
Comment.objects.bulk_create(
    Comment(article_id=500 - n % 250, name=f"Reader {n % 40}", text=f"Comment {n}") for n in range(1, 2001)
)

with CaptureQueriesContext(connection) as queries:
    reply = Client().get("/")
tables = {
    model._meta.db_table: [field.column for field in model._meta.fields]
    for model in (Site, Section, Author, Article, Comment)
}
json.dump({"queries": len(queries), "body": reply.content.decode(), "tables": tables}, sys.stdout)
"""


@pytest.fixture(scope="module")
def told():
    try:
        ZoneInfo("America/Chicago")
    except ZoneInfoNotFoundError:
        pytest.skip("Django needs the system's time zones (Debian: tzdata), which PostgreSQL brings with it")
    command = [sys.executable, "-B", "-c", SCRIPT]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_page_makes_15_queries(told):
    assert told["queries"] == 15


def test_the_page_is_the_one_of_its_contract(told):
    (check,) = load_catalog().app("django-postgres").contract.checks
    assert told["body"].encode() == check.body


def test_the_prepared_tables_are_those_of_the_models(told):
    seed = (FOLDER / "seed.sql").read_text()
    for table, columns in told["tables"].items():
        _, _, definition = seed.partition(f"CREATE TABLE {table} (")
        definition = definition.partition(";\n\n")[0]
        assert [column for column in columns if f"{column} " not in definition] == []


def test_each_statement_of_the_seed_ends_with_an_empty_line():
    # `postgres --single -j` takes a semicolon and an empty line for a statement's end, and nothing else.
    seed = (FOLDER / "seed.sql").read_text()
    assert seed.endswith(";\n\n")
    assert seed.count(";\n") == seed.count(";\n\n")
