"""Run by Alembic on the connection that app.service.db.upgrade has opened, inside its transaction."""

from alembic import context

from tilesmith.app.service.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
