"""The content of an entry: its types, its file, its rules."""
