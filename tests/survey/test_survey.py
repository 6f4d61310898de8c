"""All that a folder says of an app, and what is refused before anything is built."""

import pytest

from prony.catalog.schema.loader import load_catalog
from prony.errors import UsageError
from prony.model.subject import Interface
from prony.survey.dependencies import foreign_imports
from prony.survey.programs import usual_servers
from prony.survey.sources import Sources
from prony.survey.survey import survey_app

FLASK = "from flask import Flask\napp = Flask(__name__)\n"
MANAGE = 'import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")\n'
WSGI = "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n"
DJANGO = {"manage.py": MANAGE, "mysite/settings.py": "", "mysite/wsgi.py": WSGI, "requirements.txt": "django"}


def test_an_app_in_a_src_layout_is_found_with_the_folder_of_its_imports():
    found = survey_app("shop.web:app", {"src/shop/web.py": FLASK, "requirements.txt": "flask"}.get)
    assert (found.target, found.interface, found.root) == ("shop.web:app", "wsgi", "src")


@pytest.mark.parametrize(
    "typed", ["manage.py", ".", "mysite.wsgi", "mysite/wsgi.py", "mysite.wsgi:application"]
)
def test_a_django_project_is_found_with_its_settings(typed):
    found = survey_app(typed, DJANGO.get)
    assert (found.target, found.interface) == ("mysite.wsgi:application", "wsgi")
    assert found.environment == {"DJANGO_SETTINGS_MODULE": "mysite.settings"}


def test_settings_that_the_apps_module_names_itself_are_left_to_it():
    assert survey_app("mysite.wsgi", {**DJANGO, "mysite/wsgi.py": MANAGE + WSGI}.get).environment == {}


def test_an_app_that_its_settings_name_elsewhere_is_found():
    files = {**DJANGO, "mysite/settings.py": 'WSGI_APPLICATION = "web.entry.app"', "web/entry.py": "app = 1"}
    assert survey_app("manage.py", files.get).target == "web.entry:app"


def test_the_usual_name_of_an_app_need_not_be_typed():
    assert survey_app("shop", {"shop.py": "def application(environ, start_response): ..."}.get).target == (
        "shop:application"
    )


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("shop:ap", "did you mean --app shop:app?"), ("shop:web", "did you mean --app shop:app?")],
)
def test_an_attribute_that_is_not_there_is_refused_with_the_nearest(typed, hint):
    with pytest.raises(UsageError, match=r"`shop\.py` defines no") as refused:
        survey_app(typed, {"shop.py": "app = 1"}.get)
    assert refused.value.hint == hint


def test_an_app_that_imports_what_nothing_declares_is_refused_with_the_place():
    files = {
        "shop.py": "import os, helpers\napp = 1",
        "helpers.py": "import json\nimport flask.json\nimport yaml",
    }
    with pytest.raises(UsageError) as refused:
        survey_app("shop:app", files.get)
    assert "imports `flask` (helpers.py:2), `yaml` (helpers.py:3), and no file of its folder" in str(
        refused.value
    )
    assert "requirements.txt" in (refused.value.hint or "")


def test_an_app_that_imports_only_python_needs_no_declaration():
    assert survey_app("shop:app", {"shop.py": "import json\napp = 1"}.get).dependencies is None


def test_a_declaration_elsewhere_is_enough():
    assert survey_app("shop:app", {"shop.py": FLASK}.get, declared=True).dependencies is None


def test_imports_that_may_fail_or_run_later_are_not_needed():
    text = (
        "try:\n    import ujson\nexcept ImportError:\n    import json\n"
        "def late():\n    import numpy\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mypy\n"
        "try:\n    import flask\nfinally:\n    pass\n"
    )
    assert [one.name for one in foreign_imports(Sources({"shop.py": text}.get), "shop")] == ["flask"]


def test_the_folders_own_packages_are_followed_through_relative_imports():
    files = {
        "shop/__init__.py": "",
        "shop/web.py": "from . import views\nfrom .models import Item",
        "shop/views.py": "import jinja2",
        "shop/models/__init__.py": "from ..db import engine",
        "shop/db.py": "import sqlalchemy",
    }
    assert {one.name for one in foreign_imports(Sources(files.get), "shop.web")} == {"jinja2", "sqlalchemy"}


@pytest.mark.parametrize("interface", [one for one in Interface if one is not Interface.NONE])
def test_the_usual_servers_are_at_most_four_of_the_catalogue_that_speak_the_interface(interface):
    known = load_catalog()
    assert 2 <= len(usual_servers(interface)) <= 4
    for name in usual_servers(interface):
        assert interface in known.interfaces(name.partition("@")[0])


@pytest.mark.parametrize("source", ["-" * 200_000 + "1", "app = a" + ".b" * 100_000, "app = (\0"])
def test_a_source_that_python_cannot_parse_is_left_to_the_server(source):
    found = survey_app("shop:app", {"shop.py": source}.get)
    assert (found.target, found.interface) == ("shop:app", None)
