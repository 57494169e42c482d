"""Sources: outside queues that Fleet works on."""
