"""One worker that uses requests: one session, one request after the other.

As printed: a request that fails or times out is sent up to three times more.
"""

import time

import requests
from requests.adapters import HTTPAdapter
from tally import Tally


def work(order, open_ns):
    """Make requests until the window closes, and return what was counted."""
    tally = Tally(order, open_ns)
    with requests.Session() as session:
        # Ignore proxies that are set in the environment.
        session.trust_env = False
        if order.as_printed:
            session.mount("http://", HTTPAdapter(max_retries=3))
        while tally.goes_on():
            begun_ns = time.monotonic_ns()
            try:
                reply = session.request(
                    order.method,
                    order.url,
                    headers=order.headers if order.keep_alive else {**order.headers, "Connection": "close"},
                    data=order.body,
                    timeout=order.timeout_s,
                    allow_redirects=False,
                )
                tally.reply(begun_ns, reply.status_code, reply.content)
            except requests.Timeout:
                tally.failure(begun_ns, "timed_out")
            except requests.ConnectionError as error:
                refused = "Connection refused" in str(error)
                tally.failure(begun_ns, "connect_refused" if refused else "unspecified")
            except requests.RequestException:
                tally.failure(begun_ns, "unspecified")
    return tally
