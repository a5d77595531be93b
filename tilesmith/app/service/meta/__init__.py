"""The service itself: capabilities, codes of errors, health, metrics."""
