import os

from flask import Flask

from . import pages


def create_app(config=None):
    app = Flask(__name__)
    app.config["SECRET_KEY"] = os.environ["SECRET_KEY"]
    app.config["TITLE"] = "Shop"
    app.config.update(config or {})
    app.register_blueprint(pages.bp)
    return app
