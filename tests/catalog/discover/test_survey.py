"""All that a folder says of an app, and what is refused before anything is built."""

import pytest

from catalog.discover.test_programs import folder
from prony.catalog.discover.dependencies import foreign_imports
from prony.catalog.discover.programs import usual_servers
from prony.catalog.discover.sources import Sources
from prony.catalog.discover.survey import folder_of_app, survey_app
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import UsageError
from prony.model.subject import Interface

FLASK = "from flask import Flask\napp = Flask(__name__)\n"
MANAGE = 'import os\nos.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")\n'
WSGI = "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n"
DJANGO = {"manage.py": MANAGE, "mysite/settings.py": "", "mysite/wsgi.py": WSGI, "requirements.txt": "django"}


def test_an_app_in_a_src_layout_is_found_with_the_folder_of_its_imports():
    found = survey_app("shop.web:app", Sources({"src/shop/web.py": FLASK, "requirements.txt": "flask"}.get))
    assert (found.target, found.interface, found.root) == ("shop.web:app", "wsgi", "src")


@pytest.mark.parametrize(
    "typed", ["manage.py", ".", "mysite.wsgi", "mysite/wsgi.py", "mysite.wsgi:application"]
)
def test_a_django_project_is_found_with_its_settings(typed):
    found = survey_app(typed, Sources(DJANGO.get))
    assert (found.target, found.interface) == ("mysite.wsgi:application", "wsgi")
    assert found.environment == {"DJANGO_SETTINGS_MODULE": "mysite.settings"}


def test_settings_that_the_apps_module_names_itself_are_left_to_it():
    assert (
        survey_app("mysite.wsgi", Sources({**DJANGO, "mysite/wsgi.py": MANAGE + WSGI}.get)).environment == {}
    )


def test_an_app_that_its_settings_name_elsewhere_is_found():
    files = {**DJANGO, "mysite/settings.py": 'WSGI_APPLICATION = "web.entry.app"', "web/entry.py": "app = 1"}
    assert survey_app("manage.py", Sources(files.get)).target == "web.entry:app"


def test_the_usual_name_of_an_app_need_not_be_typed():
    assert survey_app(
        "shop", Sources({"shop.py": "def application(environ, start_response): ..."}.get)
    ).target == ("shop:application")


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("shop:ap", "did you mean --app shop:app?"), ("shop:web", "did you mean --app shop:app?")],
)
def test_an_attribute_that_is_not_there_is_refused_with_the_nearest(typed, hint):
    with pytest.raises(UsageError, match=r"`shop\.py` defines no") as refused:
        survey_app(typed, Sources({"shop.py": "app = 1"}.get))
    assert refused.value.hint == hint


def test_an_app_that_imports_what_nothing_declares_is_refused_with_the_place():
    files = {
        "shop.py": "import os, helpers\napp = 1",
        "helpers.py": "import json\nimport flask.json\nimport yaml",
    }
    with pytest.raises(UsageError) as refused:
        survey_app("shop:app", Sources(files.get))
    assert "imports `flask` (helpers.py:2), `yaml` (helpers.py:3), and no file of its folder" in str(
        refused.value
    )
    assert "requirements.txt" in (refused.value.hint or "")


def test_an_app_that_imports_only_python_needs_no_declaration():
    assert survey_app("shop:app", Sources({"shop.py": "import json\napp = 1"}.get)).dependencies is None


def test_a_declaration_elsewhere_is_enough():
    assert survey_app("shop:app", Sources({"shop.py": FLASK}.get), declared=True).dependencies is None


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
    found = survey_app("shop:app", Sources({"shop.py": source}.get))
    assert (found.target, found.interface) == ("shop:app", None)


def surveyed(files, typed="."):
    whole = folder({"requirements.txt": "flask", **files})
    return survey_app(typed, Sources(whole.read, whole.names))


FACTORY = (
    "from flask import Flask\n\n\ndef create_app(config=None, *, debug=False){}:\n    {}\n    return app\n"
)
MADE = FACTORY.format("", "app = Flask(__name__)")
TYPED = FACTORY.format(" -> Flask", "app = made_elsewhere()")


@pytest.mark.parametrize("source", [MADE, TYPED])
@pytest.mark.parametrize("typed", [".", "stall", "stall:create_app", "stall:create_app()"])
def test_a_factory_is_no_app_and_says_what_it_makes(source, typed):
    found = surveyed({"stall/__init__.py": source}, typed)
    assert (found.target, found.interface, found.call) == ("stall:create_app", "wsgi", "()")


@pytest.mark.parametrize(
    ("maker", "interface"),
    [
        ("fastapi.FastAPI", "asgi"),
        ("litestar.Litestar", "asgi"),
        ("quart.Quart", "asgi"),
        ("flask.Flask", "wsgi"),
    ],
)
def test_factories_of_the_usual_frameworks_are_recognised(maker, interface):
    module, _, name = maker.partition(".")
    found = surveyed({"main.py": f"from {module} import {name}\ndef make_app():\n    return {name}('x')\n"})
    assert (found.target, found.interface, found.call) == ("main:make_app", interface, "()")


def test_a_factory_that_another_module_offers_is_one_too():
    found = surveyed(
        {"wsgi.py": "from stall import create_app", "stall/__init__.py": MADE}, "wsgi:create_app"
    )
    assert (found.interface, found.call) == ("wsgi", "()")


def test_a_function_that_needs_something_is_no_factory():
    files = {"stall.py": "def app(environ, start_response): ...\ndef create_app(config): ...\n"}
    assert not surveyed(files, "stall:app").call
    assert not surveyed(files, "stall:create_app").call
    assert surveyed(files, "stall:create_app('x')").call == "('x')"
    with pytest.raises(UsageError, match="no call with plain values"):
        surveyed(files, "stall:create_app(open('x'))")


@pytest.mark.parametrize(
    ("path", "target", "root"),
    [
        ("app/main.py", "app.main:app", ""),
        ("src/stall/main.py", "stall.main:app", "src"),
        ("stall/asgi.py", "stall.asgi:app", ""),
        ("run.py", "run:app", ""),
        ("stall.py", "stall:app", ""),
    ],
)
def test_an_app_is_found_where_people_put_it(path, target, root):
    found = surveyed({path: FLASK, "tests/app.py": "app = 1"})
    assert (found.target, found.root) == (target, root)


def test_several_apps_of_a_folder_are_listed():
    files = {"app.py": FLASK, "main.py": "from fastapi import FastAPI\napp = FastAPI()\n"}
    with pytest.raises(UsageError) as refused:
        surveyed(files)
    assert "has 2 apps: `app:app` (Flask in app.py), `main:app` (FastAPI in main.py)" in str(refused.value)
    assert refused.value.hint == "--app app:app"


def test_one_app_that_several_modules_offer_is_one():
    assert surveyed({"app.py": FLASK, "main.py": "from app import app"}).target == "app:app"
    assert surveyed({"app.py": FLASK, "api.py": MADE, "wsgi.py": "from app import app"}).target == "wsgi:app"


def test_a_script_that_starts_the_app_is_not_the_app():
    script = "from stall import create_app\ncreate_app().run()\n"
    assert surveyed({"serve.py": script, "stall.py": MADE}).target == "stall:create_app"


def test_a_project_offers_the_interface_of_the_module_beside_it():
    asgi = WSGI.replace("wsgi", "asgi")
    found = surveyed({**DJANGO, "mysite/asgi.py": asgi}, "manage.py")
    assert (found.interface, found.others) == (Interface.WSGI, {Interface.ASGI: "mysite.asgi:application"})
    assert surveyed(DJANGO, "manage.py").others == {}


def test_the_folder_below_that_declares_what_its_app_needs_is_the_apps():
    files = {"backend/app/main.py": FLASK, "backend/pyproject.toml": "[project]\nname='a'", "web/a.js": ""}
    whole = folder(files)
    assert folder_of_app(whole, "") == "backend"
    more = folder({**files, "admin/wsgi.py": FLASK, "admin/requirements.txt": ""})
    with pytest.raises(UsageError, match="apps are in `admin`, `backend`; expected the folder of one"):
        folder_of_app(more, "")
    top = folder({**files, "app.py": FLASK})
    assert folder_of_app(top, "") == ""
    assert folder_of_app(folder({"web/a.js": "", "readme.py": "x = 1"}), "") is None


def test_a_folder_below_may_have_the_app_whose_needs_stand_above():
    files = {"requirements.txt": "flask", "api/app/main.py": FLASK, "api/app/__init__.py": ""}
    assert folder_of_app(folder(files), "") == "api"
    # A package of the folder itself is imported from there.
    assert folder_of_app(folder({"requirements.txt": "flask", "shop/main.py": FLASK}), "") == ""


def test_what_a_folder_above_declares_counts_within_the_repository():
    files = {"stall.py": FLASK, "../pyproject.toml": "[project]\nname='a'\ndependencies=['flask']"}
    found = survey_app("stall:app", Sources(files.get))
    assert (found.dependencies.source, found.dependencies.file) == ("../pyproject.toml", "../pyproject.toml")
    with pytest.raises(UsageError, match="no file of its folder declares that"):
        survey_app("stall:app", Sources({**files, ".git": ""}.get))


NEEDY = (
    "import os\nfrom os import environ\nfrom conf import URL\n"
    "KEY = os.environ['KEY']\nPORT = int(environ['LIMIT'])\nSOME = os.environ.get('SOME')\n"
    "if KEY:\n    os.environ['MORE']\ntry:\n    os.environ['MAYBE']\nexcept KeyError:\n    pass\n"
    "def app(environ, start_response):\n    os.environ['LATER']\n"
)


def test_all_variables_that_an_import_needs_are_found_at_once():
    files = {
        "stall.py": NEEDY,
        "conf.py": "import os\nURL = str(os.environ['URL'])",
        ".env": "A=1\nexport URL=x\n",
    }
    found = survey_app("stall:app", Sources(files.get))
    assert [one.name for one in found.needed] == ["KEY", "LIMIT", "URL"]
    assert (found.needed[2].path, found.needed[2].line) == ("conf.py", 2)
    assert found.offered == ("A", "URL")


def test_what_the_app_reads_from_its_file_by_itself_is_not_missing():
    files = {"stall.py": "from dotenv import load_dotenv\n" + NEEDY, "conf.py": "", ".env": "KEY=1\n"}
    assert [one.name for one in survey_app("stall:app", Sources(files.get), declared=True).needed] == [
        "LIMIT"
    ]


PYDANTIC = "from pydantic_settings import BaseSettings\nclass S(BaseSettings):\n"
# By the source of the settings: the variables without which it fails.
READERS = {
    "from decouple import config\nA = config('A')\nB = config('B', default=1)\nC = [config('C')]": "AC",
    "from environs import Env\nenv = Env()\nenv.read_env()\nA = env.str('A')\nB = env('B', default=1)": "A",
    "from environs import env\nA = env.int('A')\nB = env.bool('B', False)": "A",
    "import environ\nenv = environ.Env(A=(bool, False))\nA = env('A')": "",
    "import environ\nenv = environ.Env()\nenviron.Env.read_env(HERE / 'x')\nA = env('A')": "",
    "from decouple import Config\nconfig = Config('x')\nA = config('A')": "",
    f"{PYDANTIC} a: str\n b: int = 1\n c: int\ns = S()": "AC",
    f"{PYDANTIC} a: str\ndef made(): return S()": "",
    f"{PYDANTIC} a: Other\ns = S()": "",
    f"{PYDANTIC} a: str\ns = S(a='x')": "",
    "from pydantic import BaseModel\nclass S(BaseModel):\n a: str\ns = S()": "",
}


@pytest.mark.parametrize("settings", READERS)
def test_what_a_reader_of_settings_needs_is_found_at_once(settings):
    files = {"stall.py": "from conf import *\ndef app(environ, start_response): ...\n", "conf.py": settings}
    needed = survey_app("stall:app", Sources(files.get), declared=True).needed
    assert "".join(one.name for one in needed) == READERS[settings]


def test_settings_of_pydantic_have_a_prefix_and_a_file():
    settings = (
        f"{PYDANTIC} model_config = Is(env_prefix='shop_', env_file='live.env')\n key: str\n url: str\n"
        "s = S()\n"
    )
    files = {"stall.py": f"{settings}def app(environ, start_response): ...\n", "live.env": "SHOP_URL=x\n"}
    needed = survey_app("stall:app", Sources(files.get), declared=True).needed
    assert [one.name for one in needed] == ["SHOP_KEY"]
