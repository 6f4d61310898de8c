"""The page of a study or of a load: one file with charts, for a browser, that asks nothing of any network.

Charts are Vega-Lite specifications, made by pure functions of what was read. Only `render` knows the library
that draws them.
"""
