"""API tokens: what a request may do, and for whom too many failed attempts have been made."""
