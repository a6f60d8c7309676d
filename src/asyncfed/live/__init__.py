"""The same server on real engines. Begin with `session.py`, which says how an engine drives it."""
