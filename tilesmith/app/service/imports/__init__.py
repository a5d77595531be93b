"""Files of other compilers, read by an importer into pipeline documents."""
