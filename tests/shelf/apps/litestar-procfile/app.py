from litestar import Litestar, get


@get("/")
async def index() -> dict[str, str]:
    return {"service": "quotes"}


def create_app() -> Litestar:
    return Litestar([index])
