"""This machine: its CPUs, its other facts, and whether it is fit to measure. Reads, never changes."""
