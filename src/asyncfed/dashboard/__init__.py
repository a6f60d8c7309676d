"""The dashboard: runs as they happen, in a browser."""
