"""Effects with intervals, from counts."""
