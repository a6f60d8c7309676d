"""Long live runs, one of them killed again and again: memory, disk, and whether anything is lost or merged twice."""
