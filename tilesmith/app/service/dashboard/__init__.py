"""The dashboard: HTML pages rendered here, a module a page, from `templates`; charts as SVG, files in `static`."""
