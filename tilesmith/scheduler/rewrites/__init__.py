"""Rewrites of pipelines that keep their values, a file each; `passes` lists those that always run.

`expression_rules` has those inside of expressions, as data."""
