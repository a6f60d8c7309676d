"""Live runs: real clients and a real clock. Begin with `session.py`, which decides; an engine moves the messages."""
