from flask import Blueprint, current_app, render_template

bp = Blueprint("pages", __name__)


@bp.get("/")
def home():
    return render_template("home.html", title=current_app.config["TITLE"])
