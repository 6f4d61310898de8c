"""HdrHistogram V2 in Python: makes the blobs of test archives, and checks the engine's.

3 significant digits, lowest discernible value 1. *Source*: hdrhistogram.org, "HdrHistogram V2 encoding".
"""

import struct
import sys
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import ceil
from types import ModuleType

COMPRESSED_COOKIE, COOKIE = 0x1C849314, 0x1C849313
HIGHEST = 3_600_000_000_000


def index_of(value):
    bucket = max(0, value.bit_length() - 11)
    return ((bucket + 1) << 10) + (value >> bucket) - 1024


def highest_equivalent(index):
    bucket, sub = (index >> 10) - 1, (index & 1023) + 1024
    if bucket < 0:
        return sub - 1024
    return (sub << bucket) + (1 << bucket) - 1


@cache
def _varint(number):
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def _numbers(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield (value >> 1) ^ -(value & 1)
            value = shift = 0


class Histogram:
    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def record(self, value, count=1):
        self.counts[index_of(min(value, HIGHEST))] += count

    def merge(self, other):
        self.counts.update(other.counts)

    def __len__(self) -> int:
        return sum(self.counts.values())

    def value_at_quantile(self, quantile):
        rank, seen = max(1, ceil(quantile * len(self))), 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= rank:
                return highest_equivalent(index)
        return 0

    def count_below(self, value):
        return sum(count for index, count in self.counts.items() if index < index_of(value))

    def encode(self):
        payload, previous = bytearray(), -1
        for index, count in sorted(self.counts.items()):
            if index > previous + 1:
                payload += _varint(previous + 1 - index)
            payload += _varint(count)
            previous = index
        inner = struct.pack(">IIIIQQd", COOKIE, len(payload), 0, 3, 1, HIGHEST, 1.0) + payload
        deflated = zlib.compress(inner)
        return struct.pack(">II", COMPRESSED_COOKIE, len(deflated)) + deflated

    @staticmethod
    def decode(data):
        histogram, index = Histogram(), 0
        for number in _numbers(zlib.decompress(data[8:])[40:]):
            if number < 0:
                index -= number
                continue
            if number:
                histogram.counts[index] += number
            index += 1
        return histogram


def encoded(values: Iterable[int]) -> str:
    histogram = Histogram()
    for value, count in Counter(values).items():
        histogram.record(value, count)
    return b64encode(histogram.encode()).decode()


def distribution(values):
    """A Recording's distribution of ``values``, exact where a Recording is exact."""
    return {**_distribution(tuple(values))}


@cache
def _distribution(values):
    if not values:
        return {"count": 0, "min_ns": None, "max_ns": None, "sum_ns": None, "histogram": None}
    return {
        "count": len(values),
        "min_ns": min(values),
        "max_ns": max(values),
        "sum_ns": sum(values),
        "histogram": encoded(values),
    }


def stand_in_for_the_engine():
    """Let the reading side be tested where the engine has not been built; it only needs a histogram."""
    try:
        from prony._engine import Histogram as _  # noqa: F401
    except ImportError:
        module = ModuleType("prony._engine")
        module.Histogram = Histogram
        sys.modules["prony._engine"] = module
