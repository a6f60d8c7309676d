"""The compiled loops, and the slow readable twin each is tested against. The only room that imports numba."""
