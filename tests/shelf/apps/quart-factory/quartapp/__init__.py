from quart import Quart


def create_app(testing: bool = False) -> Quart:
    app = Quart(__name__)
    app.config["TESTING"] = testing

    @app.get("/")
    async def index():
        return "chat\n"

    return app
