"""Measured times of schedules, with the conditions that they were taken under."""
