"""Calibration: what Prony itself costs, and which limits hold; measured and stored for each machine."""
