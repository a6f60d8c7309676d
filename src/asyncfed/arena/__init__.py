"""The arena: every algorithm on the same problems, delays and splits, tuned alike, ranked with its uncertainty."""
