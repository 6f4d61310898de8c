"""threading + requests: a thread for each worker."""

import time
from concurrent.futures import ThreadPoolExecutor

from tally import merged, read_order, say_window
from with_requests import work


def main():
    order = read_order()
    open_ns = time.monotonic_ns() + round(order.warmup_s * 1e9)
    with ThreadPoolExecutor(order.workers) as executor:
        working = [executor.submit(work, order, open_ns) for _ in range(order.workers)]
        say_window(order, open_ns)
    merged([one.result() for one in working]).result()


if __name__ == "__main__":
    main()
