"""A deployment under load while everything of it is killed at random, and what is left of its work afterwards."""
