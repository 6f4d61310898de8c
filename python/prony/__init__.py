"""Prony: a dynamometer for web application servers."""
