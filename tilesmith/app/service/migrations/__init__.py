"""Alembic's migrations of the database: `env` runs them, `versions` has one a file."""
