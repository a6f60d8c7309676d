"""Tables and figures of runs. matplotlib is imported only in this room, and only when something is drawn."""
