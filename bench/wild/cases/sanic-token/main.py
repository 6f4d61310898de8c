"""Hands out the token with which services call one another."""
import os
import time
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from sanic import Sanic
from sanic.response import json

LIFE_S = 300
REUSE = os.environ.get("TOKEN_REUSE") == "1"
key = load_pem_private_key(Path("signing.pem").read_bytes(), None)
issued: dict[str, tuple[float, str]] = {}
app = Sanic("tokens")


def token_for(service: str) -> str:
    now = time.time()
    if REUSE and service in issued and issued[service][0] > now + LIFE_S / 2:
        return issued[service][1]
    claims = {"sub": service, "iss": "tokens.example.org", "iat": int(now), "exp": int(now) + LIFE_S}
    token = jwt.encode(claims, key, algorithm="RS512")
    issued[service] = (now + LIFE_S, token)
    return token


@app.get("/")
async def token(request):
    return json({"token_type": "Bearer", "expires_in": LIFE_S, "access_token": token_for("billing")})
