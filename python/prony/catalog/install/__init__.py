"""How an entry is installed: what the system has, what is built."""
