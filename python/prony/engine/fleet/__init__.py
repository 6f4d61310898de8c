"""A load from several generators, on Dask distributed.

``engine`` has the order of events, ``cluster`` alone knows Dask, ``member`` is what runs on each machine; the
others are pure.

>>> from prony.engine.fleet.address import fleet_of
>>> fleet_of("local:4").workers
4
"""
