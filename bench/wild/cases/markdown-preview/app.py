"""A preview of what somebody writes: never the same text twice."""
import itertools

import markdown
from flask import Flask

PARAGRAPH = """
## Step {n}.{i}

Take *two* of the **long** screws, see [the list](https://example.org/list/{n}), and:

1. turn the `plate`,
2. fasten it,
3. go on with step {i}.

> Do not hurry.
"""
numbers = itertools.count()
app = Flask(__name__)


@app.get("/")
def preview():
    n = next(numbers)
    return markdown.markdown("\n".join(PARAGRAPH.format(n=n, i=i) for i in range(12)))
