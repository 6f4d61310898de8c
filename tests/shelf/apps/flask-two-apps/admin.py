from flask import Flask

app = Flask("admin")


@app.get("/")
def index():
    return "back office\n"
