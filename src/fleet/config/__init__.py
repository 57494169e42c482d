"""The home and its settings: where they are, what they say, how they are changed. The only reader of os.environ."""
