"""Which strategy suits given data and given stragglers: a search in simulation, and what it recommends."""
