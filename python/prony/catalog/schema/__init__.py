"""The content of an entry: its types, its file, its rules. Must not know how an entry is installed."""
