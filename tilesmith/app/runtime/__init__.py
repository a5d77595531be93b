"""Work that runs code: compiling, running what was compiled, and the pool that does both."""
