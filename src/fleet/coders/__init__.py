"""Coders: the agents that Fleet can drive. Here are their names; what each needs to run comes with the supervisor."""

BUILT_IN = ("agy", "claude", "codex", "command", "gemini", "opencode", "scripted")
