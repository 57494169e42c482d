"""SQLite, through apsw: the embedded default. Durable (synchronous=FULL), one writer at a time, readers never wait."""
