"""The launcher: a process of its own that becomes another program inside limits and walls. Imports nothing but the
standard library, and nothing of what the service has loaded."""
