"""The catalogue of servers and apps, and the environments that they are installed in.

One TOML file a server in `servers`, one folder an app in `apps`. Must not know trials, studies or reports.
"""
