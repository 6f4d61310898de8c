"""What the folder of an app says: how the app is called, what it needs, which servers fit. Pure.

It reads no file itself: `Read` gives the text of one.
"""
