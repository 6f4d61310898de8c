from flask import Flask
from flask_socketio import SocketIO

app = Flask(__name__)
socketio = SocketIO(app)


@app.route("/")
def board():
    return "a board\n"


if __name__ == "__main__":
    socketio.run(app, port=5000)
