"""The store: the only SQL. One verb is one transition is one transaction, rows and events together."""
