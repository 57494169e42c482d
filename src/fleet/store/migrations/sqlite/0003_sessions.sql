-- Who runs what, and what came of it.
CREATE TABLE sessions (
  id         TEXT PRIMARY KEY,
  seq        INTEGER NOT NULL,
  state      TEXT NOT NULL,
  epoch      INTEGER NOT NULL,
  supervisor TEXT NOT NULL,
  progress   TEXT NOT NULL,
  doc        TEXT NOT NULL
) WITHOUT ROWID;

-- The sequence of a receipt is that of the event that brought it, so those of a task are found through its events.
CREATE TABLE receipts (
  seq  INTEGER PRIMARY KEY,
  task TEXT NOT NULL,
  run  TEXT,
  doc  TEXT NOT NULL
);
CREATE INDEX receipts_of_run ON receipts (run, seq) WHERE run IS NOT NULL;

CREATE TRIGGER receipts_stay BEFORE UPDATE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts are never changed'); END;
CREATE TRIGGER receipts_last BEFORE DELETE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts are never deleted'); END;

CREATE TABLE supervisors (
  id          TEXT PRIMARY KEY,
  left_at     INTEGER,
  lease_until INTEGER,                         -- by the database's clock; unused where the lease is a file lock
  doc         TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE intents (
  id      TEXT PRIMARY KEY,
  seq     INTEGER NOT NULL,
  target  TEXT NOT NULL,
  pending INTEGER NOT NULL,
  doc     TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX intents_pending ON intents (seq) WHERE pending = 1;
CREATE INDEX intents_of_target ON intents (target, seq);

CREATE TABLE hosts (
  name TEXT PRIMARY KEY,
  doc  TEXT NOT NULL
) WITHOUT ROWID;
