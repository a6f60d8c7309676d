"""Differential privacy of clients: accounting without sampling, and the modes that put it into a run."""
