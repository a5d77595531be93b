"""Random pipelines of real size, of what image processing is made of; the same seed makes the same document.

A pipeline is drawn as a person would put one together: images of usual sizes and types, then block after block (a blur,
a colour matrix, a pyramid, a histogram, ...: functions from pictures to pictures, in modules by kind), each applied to
the newest picture or to an earlier one, so that stages have several readers; what nothing reads in the end goes out.
"""

from __future__ import annotations

from benchmarks.drawing.compose import drawn

__all__ = ["drawn"]
