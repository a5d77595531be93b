"""Results of two commits compared: predicted times by a limit, measured times by a test of noise.

Plain data and arithmetic, for the command `tilesmith ci` and for the service alike.
"""
