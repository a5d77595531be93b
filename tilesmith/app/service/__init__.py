"""The HTTP service: a FastAPI application (`main`) over one database (`db`, `tables`), whose slow work is jobs.

A folder has a resource: its routes in `endpoints`, its rules in `service`, its statements in `repository`, and the
bodies of its requests and answers in `schemas`. `dashboard` has the pages. Modules beside folders serve them all."""
