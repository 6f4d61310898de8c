"""The pages of the docs that `scripts/reference` makes and nobody commits, as texts."""

from functools import cache

from scripts.loading import load


@cache
def reference():
    """Return the script that makes the generated pages, as a module."""
    return load("reference")


@cache
def made_page(name):
    return reference().made(name)
