"""Basic authentication: the password is checked with every request."""
import hashlib
import os
from functools import lru_cache

from fastapi import FastAPI

SALT = b"9f1c1f"
ROUNDS = 60_000
app = FastAPI()


def digest(password: str) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, ROUNDS)


STORED = digest("correct horse")
if os.environ.get("CACHE_LOGINS") == "1":
    digest = lru_cache(maxsize=1000)(digest)


@app.get("/")
async def account(password: str = "correct horse"):
    return {"ok": digest(password) == STORED}
