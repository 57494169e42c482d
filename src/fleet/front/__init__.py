"""The front: every question and verb of a fleet in one interface, whether its home is here or served elsewhere."""
