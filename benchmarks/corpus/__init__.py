"""The corpus: pipelines written from the mathematics of image processing, by topic, none of which is shipped.

`registry` has them by name; `python -m benchmarks.corpus` schedules, checks and times them, with random ones.
"""
