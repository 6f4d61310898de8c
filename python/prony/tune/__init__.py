"""Which settings, and which server, an app should run with: pure, from blocks of figures to the next block.

Must not know how a trial is run, or the command line.
"""
