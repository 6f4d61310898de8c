"""What Prony watches while a load runs: the subject's processes, the machine, and the kernel's counters.

One file each.
"""
