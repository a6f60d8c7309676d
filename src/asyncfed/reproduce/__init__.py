"""The paper's experiments run again: its figures, what it does not show, and a verdict on each of its claims."""
