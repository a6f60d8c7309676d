"""The rivals: W1 to W3 in other libraries, each in an environment of its own, in turn with AsyncFed."""
