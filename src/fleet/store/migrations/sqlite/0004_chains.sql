-- A commit writes whole pages, so what a task's life changes stands in as few trees as can be.
-- No index over the subjects of events: each event names the one before it, and a task's row says where its chain ends.
-- No rows for what events say already: an ended session and a receipt are read from the chain of their task.
CREATE TABLE linked (
  seq     INTEGER PRIMARY KEY,                 -- commit order: one writer at a time, and none is deleted
  subject TEXT NOT NULL,
  prev    INTEGER,                             -- the subject's event before this one
  kind    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  hash    BLOB NOT NULL,                       -- sha256(hash of the subject's previous event || body)
  body    TEXT NOT NULL
);
INSERT INTO linked (seq, subject, prev, kind, at, hash, body)
  SELECT seq, subject, (SELECT max(seq) FROM events p WHERE p.subject = e.subject AND p.seq < e.seq), kind, at, hash, body
  FROM events e ORDER BY seq;

CREATE TABLE standing (
  seq        INTEGER PRIMARY KEY,              -- numbered from 1: none is ever deleted
  uid        TEXT NOT NULL UNIQUE,
  run        TEXT,
  task_id    TEXT NOT NULL,
  shelf      TEXT NOT NULL,                    -- its state, or ready: queued with all its needs completed
  priority   INTEGER NOT NULL,
  waiting    INTEGER NOT NULL,                 -- how many of its needs are not completed
  lane       TEXT NOT NULL,
  not_before INTEGER,
  updated_at INTEGER NOT NULL,
  source     TEXT,
  restarts   INTEGER NOT NULL,
  block      TEXT,
  head       INTEGER NOT NULL,                 -- its newest event
  hash       BLOB NOT NULL,                    -- that event's
  live       TEXT,                             -- the session that is open
  doc        TEXT NOT NULL
);
INSERT INTO standing (seq, uid, run, task_id, shelf, priority, waiting, lane, not_before, updated_at, source, restarts,
    block, head, hash, live, doc)
  SELECT t.seq, t.uid, t.run, t.task_id, t.shelf, t.priority, t.waiting, t.lane, t.not_before, t.updated_at, t.source,
    t.restarts, t.block, e.seq, e.hash,
    (SELECT s.doc FROM sessions s WHERE s.id = t.doc ->> '$.session'), t.doc
  FROM tasks t LEFT JOIN events e ON e.seq = (SELECT max(seq) FROM events l WHERE l.subject = t.uid) ORDER BY t.seq;
DROP TABLE tasks;
ALTER TABLE standing RENAME TO tasks;
CREATE INDEX tasks_shelves ON tasks (shelf, lane, priority, seq);
CREATE UNIQUE INDEX tasks_of_run ON tasks (run, task_id) WHERE run IS NOT NULL;
CREATE INDEX tasks_open_of_run ON tasks (run, shelf) WHERE run IS NOT NULL;

-- The ends of the chains of all else: runs, hosts, supervisors.
CREATE TABLE heads (
  subject TEXT PRIMARY KEY,
  head    INTEGER NOT NULL,
  hash    BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO heads (subject, head, hash)
  SELECT subject, seq, hash FROM events e
  WHERE subject LIKE '%/%' AND seq = (SELECT max(seq) FROM events l WHERE l.subject = e.subject);

DROP TABLE events;
ALTER TABLE linked RENAME TO events;
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;

-- How far the reading of each session has come.
CREATE TABLE progress (
  session TEXT PRIMARY KEY,
  doc     TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO progress (session, doc) SELECT id, progress FROM sessions WHERE progress <> '{}';
DROP TABLE sessions;
DROP TABLE receipts;

-- What is queued or in progress is found when asked: a count of it would change at every step of a task.
DELETE FROM counts WHERE key IN ('queued', 'running', 'verifying');
