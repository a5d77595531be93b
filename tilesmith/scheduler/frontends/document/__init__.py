"""Pipeline documents: loaded safely, parsed, typed and checked, with all problems reported at once."""
