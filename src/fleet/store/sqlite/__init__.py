"""SQLite, through apsw: the embedded default. Every commit is synced, one writer at a time, readers never wait."""
