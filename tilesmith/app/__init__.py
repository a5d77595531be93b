"""The application around the scheduler: the command, the service and its clients, and what runs code."""
