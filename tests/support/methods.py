"""The method of the paper, for tests of what it decides."""

from tilesmith.scheduler.compiler import Options
from tilesmith.scheduler.search import SearchOptions

PAPER = SearchOptions("taco2019")
PAPER_OPTIONS = Options("taco2019")
