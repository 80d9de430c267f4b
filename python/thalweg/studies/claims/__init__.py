"""The claims of a study, as declared in its files."""
