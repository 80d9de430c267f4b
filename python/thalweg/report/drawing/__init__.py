"""Charts, as Vega-Lite and as files."""
