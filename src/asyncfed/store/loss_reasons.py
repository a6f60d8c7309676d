"""Reasons for losses and refusals that readers of a journal may want to tell apart."""

OVER = "the run is over"
REPLY_REFUSED = "its reply was refused"
SERVER_DIED = "the server was restarted"
SET_ASIDE = "the node was set aside for its faults"
TOO_LATE = "its ticket had been given up"
