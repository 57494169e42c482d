"""The nouns of Fleet and their rules. No I/O, no clock, no randomness."""
