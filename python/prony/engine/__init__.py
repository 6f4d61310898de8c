"""Load generators: one role, several kinds. Must not know trials or archives."""
