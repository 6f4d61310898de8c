"""Documents from what was read: words, sections, tables. Pure; makes no number, knows no face."""
