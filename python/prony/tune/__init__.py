"""Which settings, and which server, an app should run with: from blocks of figures to the next block."""
