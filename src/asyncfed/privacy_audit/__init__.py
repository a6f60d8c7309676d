"""Audits of privacy by canaries: what an adversary who sees all releases can tell, against what is claimed."""
