"""The robustness study: attacks against defences, by the share of clients that lie, and what each defence costs."""
