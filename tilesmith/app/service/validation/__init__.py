"""Documents checked without a schedule: pipelines, platforms, strategies."""
