"""How an app is called, read from its source."""

import pytest

from prony.catalog.discover.interface import bound_names, find_interface
from prony.catalog.discover.sources import Sources

APPS = {
    "flask": ("wsgi", "from flask import Flask\napp = Flask(__name__)"),
    "a factory": ("wsgi", "import flask\ndef make():\n    a = flask.Flask('x')\n    return a\napp = make()"),
    "bottle": ("wsgi", "import bottle\napp = bottle.default_app()"),
    "falcon": ("wsgi", "import falcon\napp = falcon.App()"),
    "falcon asgi": ("asgi", "import falcon.asgi\napp = falcon.asgi.App()"),
    "fastapi": ("asgi", "from fastapi import FastAPI as F\napp: F = F()"),
    "starlette with middleware": ("asgi", "from starlette.applications import Starlette\n"
                                  "from mine import Wrap\napp = Starlette()\napp = Wrap(app)"),
    "django": ("wsgi", "from django.core.wsgi import get_wsgi_application\napp = get_wsgi_application()"),
    "channels": ("asgi", "from django.core.asgi import get_asgi_application\napp = get_asgi_application()"),
    "pyramid": ("wsgi", "from pyramid.config import Configurator\nwith Configurator() as config:\n"
                "    app = config.make_wsgi_app()"),
    "a function": ("wsgi", "def app(environ, start_response):\n    pass"),
    "a coroutine": ("asgi", "async def app(scope, receive, send):\n    pass"),
    "an instance": ("asgi", "class App:\n    async def __call__(self, s, r, send): ...\napp = App()"),
    "a subclass": ("wsgi", "import flask\nclass Shop(flask.Flask): ...\napp = Shop(__name__)"),
    "in a condition": ("wsgi", "import flask\nif True:\n    app = flask.Flask('x')\nelse:\n    app = None"),
}  # fmt: skip


@pytest.mark.parametrize("case", APPS)
def test_the_interface_is_read_from_what_makes_the_app(case):
    interface, text = APPS[case]
    found = find_interface(Sources({"shop.py": text}.get), "shop:app")
    assert found is not None
    assert found.interface == interface


def test_a_name_from_another_module_is_followed_there():
    files = {
        "shop/__init__.py": "from .web import app",
        "shop/web.py": "from shop.factory import create\napp = create()",
        "shop/factory.py": "from fastapi import FastAPI\ndef create():\n    return FastAPI()",
    }
    found = find_interface(Sources(files.get), "shop:app")
    assert found is not None
    assert (found.interface, found.reason) == ("asgi", "FastAPI in shop/factory.py")


@pytest.mark.parametrize("text", ["app = load()", "from x import app", "app = app", "app = f(g(h()))", "("])
def test_what_the_source_does_not_say_is_not_guessed(text):
    assert find_interface(Sources({"shop.py": text}.get), "shop:app") is None


def test_names_bound_in_conditions_loops_and_imports_are_there():
    module = Sources(
        {
            "shop.py": "import a.b as c, d\ntry:\n    x = 1\nexcept E:\n    y: int = 2\nwith o() as (z, w): 0"
        }.get
    ).module("shop")
    assert module is not None
    assert bound_names(module) == {"c", "d", "x", "y", "z", "w"}


@pytest.mark.parametrize("text", ["from x import *", "globals()['app'] = 1", "def __getattr__(name): ..."])
def test_names_that_only_running_the_module_shows_are_not_denied(text):
    module = Sources({"shop.py": text}.get).module("shop")
    assert module is not None
    assert bound_names(module) is None
