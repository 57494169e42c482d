-- No index over the subjects of events: each event names the one before it, and a task's row says where its chain ends.
-- No rows for what events say already: an ended session and a receipt are read from the chain of their task.
ALTER TABLE events DISABLE TRIGGER events_stay;
ALTER TABLE events ADD COLUMN prev BIGINT;                          -- the subject's event before this one
UPDATE events e SET prev = (SELECT max(seq) FROM events p WHERE p.subject = e.subject AND p.seq < e.seq);
ALTER TABLE events ENABLE TRIGGER events_stay;

ALTER TABLE tasks ADD COLUMN head BIGINT NOT NULL DEFAULT 0;       -- its newest event
ALTER TABLE tasks ADD COLUMN hash BYTEA NOT NULL DEFAULT '';       -- that event's
ALTER TABLE tasks ADD COLUMN live TEXT COLLATE "C";                -- the session that is open
UPDATE tasks SET (head, hash) = (SELECT seq, events.hash FROM events WHERE subject = uid ORDER BY seq DESC LIMIT 1);
UPDATE tasks SET live = (SELECT sessions.doc FROM sessions WHERE id = (tasks.doc::json) ->> 'session');

-- The ends of the chains of all else: runs, hosts, supervisors.
CREATE TABLE heads (
  subject TEXT COLLATE "C" PRIMARY KEY,
  head    BIGINT NOT NULL,
  hash    BYTEA NOT NULL
);
INSERT INTO heads (subject, head, hash)
  SELECT DISTINCT ON (subject) subject, seq, hash FROM events WHERE subject LIKE '%/%' ORDER BY subject, seq DESC;
DROP INDEX events_of_subject;

-- How far the reading of each session has come.
CREATE TABLE progress (
  session TEXT COLLATE "C" PRIMARY KEY,
  doc     TEXT COLLATE "C" NOT NULL
);
INSERT INTO progress (session, doc) SELECT id, progress FROM sessions WHERE progress <> '{}';
DROP TABLE sessions;
DROP TABLE receipts;
