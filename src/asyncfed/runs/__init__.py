"""Runs: simulate, resume, verify, live, what if, and what a run leaves behind."""
