"""asyncio + aiohttp in several processes: the workers are distributed evenly."""

import asyncio
import multiprocessing
import time

from tally import merged, read_order, say_window
from with_aiohttp import work_together


def worker(order, workers, ready, opening, results):
    ready.wait()
    results.put(asyncio.run(work_together(order, workers, opening.value)))


def main():
    order = read_order()
    ready = multiprocessing.Barrier(order.processes + 1)
    opening, results = multiprocessing.Value("q"), multiprocessing.Queue()
    shares = [len(range(number, order.workers, order.processes)) for number in range(order.processes)]
    processes = [
        multiprocessing.Process(target=worker, args=(order, share, ready, opening, results), daemon=True)
        for share in shares
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
