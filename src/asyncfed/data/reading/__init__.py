"""From files to columns: which files make a table, how they are written, and what their texts mean."""
