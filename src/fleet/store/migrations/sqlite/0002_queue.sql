-- The queue. `doc` is the fold of a task's events; the columns beside it are its index.
CREATE TABLE tasks (
  seq        INTEGER PRIMARY KEY,
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
  doc        TEXT NOT NULL
);
CREATE INDEX tasks_shelves ON tasks (shelf, lane, priority, seq);
CREATE UNIQUE INDEX tasks_of_run ON tasks (run, task_id) WHERE run IS NOT NULL;
CREATE INDEX tasks_open_of_run ON tasks (run, shelf) WHERE run IS NOT NULL;

CREATE TABLE links (
  task  TEXT NOT NULL,
  other TEXT NOT NULL,
  kind  TEXT NOT NULL,
  PRIMARY KEY (task, other)
) WITHOUT ROWID;
CREATE INDEX links_back ON links (other, kind, task);

CREATE TABLE comments (
  id   TEXT PRIMARY KEY,
  seq  INTEGER NOT NULL,
  task TEXT NOT NULL,
  doc  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX comments_of_task ON comments (task, seq);

CREATE TABLE runs (
  id    TEXT PRIMARY KEY,
  seq   INTEGER NOT NULL,
  state TEXT NOT NULL,
  doc   TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_by_age ON runs (seq);

-- Running counts, so that status costs the same at any size.
CREATE TABLE counts (
  scope TEXT NOT NULL,                         -- a run, or * for all
  key   TEXT NOT NULL,
  n     INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) WITHOUT ROWID;
