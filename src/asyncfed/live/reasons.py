"""Reasons for losses and refusals that are the server's doing, not the client's; a replay tells them apart by these."""

OVER = "the run is over"
SERVER_DIED = "the server was restarted"
SET_ASIDE = "the node was set aside for its faults"
TOO_LATE = "its ticket had been given up"
