"""The language of pipelines in Python: what functions that `tilesmith.pipeline` decorates are written with.

>>> from tilesmith.language import Image, Stage, Var, pipeline, uint16
>>> x, y = Var("x"), Var("y")
>>> photo, twice = Image("photo", uint16, x, y), Stage("twice")
>>> twice[x, y] = 2 * photo[x, y]
>>> pipeline("twice", outputs=[twice], estimates={twice: [(0, 640), (0, 480)]}).name
'twice'
"""

from __future__ import annotations

from tilesmith.scheduler.frontends.python.frontend import *  # noqa: F403  (its list is the list)
from tilesmith.scheduler.frontends.python.frontend import __all__ as __all__
