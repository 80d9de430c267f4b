"""The kinds of pages."""
