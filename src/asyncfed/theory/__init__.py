"""What can be proved about a run: the constants of a problem, the bounds, and what they say together."""
