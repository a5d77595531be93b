"""The platform kind `cpu`: its document, and detection of the host."""
