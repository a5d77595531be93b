"""Memory traffic of a group: what each cache holds of it, and how far rows are in order."""
