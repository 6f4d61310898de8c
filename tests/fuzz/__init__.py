"""Archives as nobody should send them: made by a seed, read in forked workers, and what may not happen."""
