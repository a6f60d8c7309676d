"""Vectors: how a merge is carried out, and the rules it may name."""

from asyncfed.rules.vectors import COMBINERS, Vectors

__all__ = ["COMBINERS", "Vectors"]
