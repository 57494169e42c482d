"""For tests, ours and those of plugins: contract suites over every implementation, and builders of data."""
