"""Reasons for losses and refusals, as the journal holds them, for readers that distinguish them."""

MODEL_LOST = "its client no longer had the model that the difference was from"
OVER = "the run is over"
REPLY_REFUSED = "its reply was refused"
SERVER_DIED = "the server was restarted"
SET_ASIDE = "the node was set aside for its faults"
TOO_LATE = "its ticket had been given up"
WRONG_SECRET = "it does not carry the secret of its task"
