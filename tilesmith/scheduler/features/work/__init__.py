"""Work of a group as it runs: vectors, operations and transfers of a row, for models of time."""
