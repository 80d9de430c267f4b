"""Sentences, labels, numbers and tables of pages."""
