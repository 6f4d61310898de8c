"""What this machine is, source by source: each fact a value, or ``{"missing": reason}``.

What turns a file's text into facts is pure, and named ``parse_...`` or after what it returns. Must not know
what facts are for.
"""
