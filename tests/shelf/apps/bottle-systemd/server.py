import os

from bottle import Bottle, run

app = Bottle()


@app.route("/")
def index():
    return "short links\n"


if __name__ == "__main__":
    run(app, host="0.0.0.0", port=int(os.environ.get("PORT", 8080)), server="waitress", threads=6, quiet=True)
