"""Side-by-side measurements: ours against peers, and the figures that the project holds itself to."""
