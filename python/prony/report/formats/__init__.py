"""Faces: a Document or a Reading as text on a terminal, as Markdown, CSV or JSON; one file each."""
