"""Requests from files: lists of them, and data for templates, compiled for the engine."""
