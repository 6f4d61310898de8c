"""An archive's content as values: all that any report shows. Pure; must not know words or faces."""
