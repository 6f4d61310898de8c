"""How an entry is started: the exact process, and the command that a person types."""
