"""What an entry says: its types, its file, the rules that it must keep. Must not know how it is installed."""
