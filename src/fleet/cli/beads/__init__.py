"""The beads verbs on Fleet's own queue, and the way to the real bd."""
