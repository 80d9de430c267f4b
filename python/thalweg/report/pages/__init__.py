"""Each kind of page, put together."""
