"""Slow and readable versions of the algorithms, written from their formulas alone. Nothing here imports AsyncFed."""
