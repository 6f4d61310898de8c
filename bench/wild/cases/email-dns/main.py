"""A form of a lead generator: is this an address that can receive mail?"""
import os

import dns.asyncresolver
import dns.resolver
from email_validator import validate_email
from fastapi import FastAPI

HOST, PORT = os.environ.get("NAME_SERVER", "127.0.0.1:9203").split(":")


def configured(resolver):
    resolver.nameservers, resolver.port, resolver.cache = [HOST], int(PORT), None
    return resolver


blocking = configured(dns.resolver.Resolver(configure=False))
waiting = configured(dns.asyncresolver.Resolver(configure=False))
app = FastAPI()


@app.get("/")
async def check(address: str = "jane.doe@example-mail.com"):
    if os.environ.get("ASYNC_DNS") == "1":
        found = validate_email(address, check_deliverability=False)
        answer = await waiting.resolve(found.domain, "MX")
        return {"domain": found.domain, "mx": len(answer)}
    found = validate_email(address, dns_resolver=blocking)
    return {"domain": found.domain, "mx": len(found.mx)}
