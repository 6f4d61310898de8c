"""Figures from measurements: pure functions, values in and values out.

Must not know files, reports or how anything was measured.
"""
