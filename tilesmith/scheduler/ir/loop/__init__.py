"""The loop IR: operations (`ops`), statements (`program`), and their text, printed and parsed by one table (`syntax`).

Beside them a verifier, an interpreter, a traversal, and the builder that lowering makes programs with."""
