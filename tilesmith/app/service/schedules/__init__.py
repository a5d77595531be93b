"""Schedules: asked for, computed in processes of their own (`engine`), kept by the hash of what was asked, listed."""
