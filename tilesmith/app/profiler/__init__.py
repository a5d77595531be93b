"""Measurements on this machine: its figures (`calibrate`, kept by `first_use`), and candidates timed (`tuning`)."""
