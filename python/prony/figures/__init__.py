"""Figures from measurements: pure functions, values in and values out."""
