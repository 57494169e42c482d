"""MCP: the verbs of the command line as tools for manager agents."""
