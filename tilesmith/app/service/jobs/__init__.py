"""Jobs: building, running, measuring and tuning, in rows of the database that `runner` gives to a pool of workers."""
