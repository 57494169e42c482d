"""Policy: decisions as pure functions that return a value with its reason."""
