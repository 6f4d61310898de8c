"""What this machine is, source by source: each fact a value, or ``{"missing": reason}``.

Functions that turn a file's text into facts are pure, and named ``parse_...`` or after what they return.
"""
