"""The method of the paper, for tests of what it decides."""

from scheduler.compiler import Options
from scheduler.search import SearchOptions

PAPER = SearchOptions("taco2019")
PAPER_OPTIONS = Options("taco2019")
