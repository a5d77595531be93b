"""Groups with tile sizes left open: members, loop nest, footprints, points and elements."""
