"""multiprocessing + requests: a process for each worker."""

import multiprocessing
import time

from tally import merged, read_order, say_window
from with_requests import work


def worker(order, ready, opening, results):
    ready.wait()
    results.put(work(order, opening.value))


def main():
    order = read_order()
    ready = multiprocessing.Barrier(order.workers + 1)
    opening, results = multiprocessing.Value("q"), multiprocessing.Queue()
    processes = [
        multiprocessing.Process(target=worker, args=(order, ready, opening, results), daemon=True)
        for _ in range(order.workers)
    ]
    for process in processes:
        process.start()
    opening.value = time.monotonic_ns() + round(order.warmup_s * 1e9)
    ready.wait()
    say_window(order, opening.value)
    # Read before joining: a process ends only when its queued output has been read.
    tallies = [results.get() for _ in processes]
    for process in processes:
        process.join()
    merged(tallies).result()


if __name__ == "__main__":
    main()
