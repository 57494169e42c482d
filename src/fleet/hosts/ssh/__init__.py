"""The ssh transport: another machine, through the system's own ssh client."""
