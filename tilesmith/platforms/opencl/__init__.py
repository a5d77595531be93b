"""The platform kind `opencl`: its document, and detection of devices."""
