from pathlib import Path

from pyramid.paster import get_app

application = get_app(str(Path(__file__).with_name("production.ini")))
