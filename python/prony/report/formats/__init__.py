"""A document, or the results of a study, as text on a terminal, as Markdown, CSV or JSON; one file each."""
