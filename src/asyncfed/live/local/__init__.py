"""The live engine for one machine: every client a process of its own, with nothing but its own data."""
