"""Specs in files: read, decoded, and everything that is wrong with them told at once."""
