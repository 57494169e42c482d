"""Scorers: from evidence to a score. Here are only their names and where each lives; nothing is imported."""

BUILT_IN = {
    "command": "fleet.scorers.command:Command",
    "exit_code": "fleet.scorers.exit_code:ExitCode",
    "file_exists": "fleet.scorers.file_exists:FileExists",
    "json_path": "fleet.scorers.json_path:JsonPath",
    "regex_match": "fleet.scorers.regex_match:RegexMatch",
    "verifier_prompt": "fleet.scorers.verifier_prompt:VerifierPrompt",
}
"""The same names and places as the entry points of the package; a test holds the two together."""
