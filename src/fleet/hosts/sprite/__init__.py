"""Sprites: small machines of a provider that sleep when nobody needs them, reached by its API alone."""
