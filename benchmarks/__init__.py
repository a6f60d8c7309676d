"""Speed, measured against the raw kernel and against the peers in one run."""
