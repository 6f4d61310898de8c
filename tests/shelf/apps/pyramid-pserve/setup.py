from setuptools import setup

setup(
    name="guestbook",
    version="0.1",
    py_modules=["guestbook"],
    install_requires=["pyramid", "waitress", "plaster_pastedeploy", "setuptools<80"],
    entry_points={"paste.app_factory": ["main = guestbook:main"]},
)
