"""asyncio + aiohttp: a coroutine for each worker, in one event loop."""

import asyncio
import threading
import time

from tally import read_order, say_window
from with_aiohttp import work_together


def main():
    order = read_order()
    open_ns = time.monotonic_ns() + round(order.warmup_s * 1e9)
    threading.Thread(target=say_window, args=(order, open_ns)).start()
    asyncio.run(work_together(order, order.workers, open_ns)).result()


if __name__ == "__main__":
    main()
