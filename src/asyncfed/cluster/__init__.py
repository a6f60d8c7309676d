"""Ray: trainings of a simulation and clients of a live run on other machines of a trusted cluster."""
