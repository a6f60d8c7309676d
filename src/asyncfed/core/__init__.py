"""The decisions: types, the server, staleness, sampling and schedules. No I/O, no clock, no arrays."""
