"""Load generators: one role, several kinds."""
