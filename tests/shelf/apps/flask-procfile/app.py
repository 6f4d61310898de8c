from flask import Flask, jsonify

app = Flask(__name__)
BOOKS = [{"id": 1, "title": "Stoner"}, {"id": 2, "title": "Middlemarch"}]


@app.get("/")
def index():
    return "The bookshop is open.\n"


@app.get("/books")
def books():
    return jsonify(BOOKS)
