-- The ledger: every fact, once, for good.
CREATE TABLE events (
  seq     INTEGER PRIMARY KEY,                 -- commit order: one writer at a time, and none is deleted
  subject TEXT NOT NULL,
  kind    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  hash    BLOB NOT NULL,                       -- sha256(hash of the subject's previous event || body)
  body    TEXT NOT NULL
);
CREATE UNIQUE INDEX events_of_subject ON events (subject, seq);

CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;

-- How far each reader of the feed has come.
CREATE TABLE cursors (
  name       TEXT PRIMARY KEY,
  position   TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;
