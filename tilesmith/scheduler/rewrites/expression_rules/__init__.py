"""Rules that rewrite expressions: patterns with conditions that are proved, as data and as documents."""
