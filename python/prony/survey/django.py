"""A Django project, recognised by its ``manage.py``. Pure.

>>> text = 'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site.settings")'
>>> settings_module({"manage.py": text}.get)
'site.settings'
"""

import re

from prony.survey.sources import Read

DJANGO_SETTINGS = "DJANGO_SETTINGS_MODULE"

# *Source*: Django documentation, django-admin and manage.py.
_SET = re.compile(
    rf"""setdefault\(\s*["']{DJANGO_SETTINGS}["']\s*,\s*["'](?P<module>[\w.]+)["']"""
    rf"""|environ\[["']{DJANGO_SETTINGS}["']\]\s*=\s*["'](?P<other>[\w.]+)["']"""
)
_SERVED = re.compile(r"""^WSGI_APPLICATION\s*=\s*["'](?P<module>[\w.]+)\.(?P<name>\w+)["']""", re.MULTILINE)


def settings_module(read: Read, file: str = "manage.py") -> str | None:
    """Return the settings that a project's file names; null when there is no such file, or none in it."""
    found = _SET.search(read(file) or "")
    return (found["module"] or found["other"]) if found else None


def target_of_project(read: Read) -> str | None:
    """Return the WSGI application of the project whose ``manage.py`` is in the folder; null without one."""
    settings = settings_module(read)
    if settings is None:
        return None
    said = _SERVED.search(read(f"{settings.replace('.', '/')}.py") or "")
    return f"{said['module']}:{said['name']}" if said else f"{settings.partition('.')[0]}.wsgi:application"
