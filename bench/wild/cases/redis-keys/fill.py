"""100,000 results of tasks and twenty queues."""
import os

import redis

store = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6399/1"))
store.flushdb()
with store.pipeline(transaction=False) as pipe:
    for n in range(100_000):
        pipe.set(f"result:{n}", "ok")
    for n in range(20):
        pipe.set(f"queue:{n}", "0")
        pipe.sadd("queues", f"queue:{n}")
    pipe.execute()
