"""The method `taco2019`: Algorithms 1 to 5 of the paper (TACO 2019, see docs/method.md)."""
