"""A page of a site of little content: from memory, about a millisecond of computing."""

from flask import Flask, render_template_string

app = Flask(__name__)
PLUGINS = [(f"Plugin {n}", f"{n}.0", "Ann Author") for n in range(40)]
PAGE = """\
<!doctype html>
<title>Plugins</title>
<table>
{% for name, version, author in plugins %}<tr><td>{{ name }}<td>{{ version }}<td>{{ author }}
{% endfor %}</table>
"""


@app.get("/")
def plugins():
    return render_template_string(PAGE, plugins=PLUGINS)
