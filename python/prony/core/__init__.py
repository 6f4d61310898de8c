"""Words and tools that know nothing of measuring."""
