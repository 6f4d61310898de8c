"""Documents of what this machine has: servers, its own fitness, what measuring costs. Pure.

They show values of the measuring side, which `report` must not know.
"""
