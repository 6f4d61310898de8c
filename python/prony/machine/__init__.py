"""This machine: its CPUs, its other facts, and whether it is fit to measure. Reads, never changes.

Each fact is a value, or ``{"missing": reason}``. Functions that turn a file's text into facts are pure, and
named ``parse_...`` or after what they return.
"""
