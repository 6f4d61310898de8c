"""How an entry is launched: the exact process to start, and what a person types. Must not know how it is
installed.
"""
