"""Control: every verb that a person can issue."""
