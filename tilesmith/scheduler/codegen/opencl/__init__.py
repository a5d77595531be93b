"""Loop program to OpenCL C 1.2, and the C that starts it."""
