"""A stand-in for the API of sprites: every sprite is a real directory with real processes on this machine."""
