"""The supervisor: loops that take tasks and drive sessions, one file per duty."""
