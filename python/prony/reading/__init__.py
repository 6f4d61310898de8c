"""An archive's content as values: all that any report shows. Pure."""
