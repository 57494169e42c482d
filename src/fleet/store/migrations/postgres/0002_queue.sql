-- The queue. `doc` is the fold of a task's events; the columns beside it are its index.
CREATE TABLE tasks (
  seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid        TEXT COLLATE "C" NOT NULL UNIQUE,
  run        TEXT COLLATE "C",
  task_id    TEXT COLLATE "C" NOT NULL,
  shelf      TEXT COLLATE "C" NOT NULL,        -- its state, or ready: queued with all its needs completed
  priority   BIGINT NOT NULL,
  waiting    BIGINT NOT NULL,                 -- how many of its needs are not completed
  lane       TEXT COLLATE "C" NOT NULL,
  not_before BIGINT,
  updated_at BIGINT NOT NULL,
  source     TEXT COLLATE "C",
  restarts   BIGINT NOT NULL,
  block      TEXT COLLATE "C",
  doc        TEXT COLLATE "C" NOT NULL
);
CREATE INDEX tasks_shelves ON tasks (shelf, lane, priority, seq);
CREATE UNIQUE INDEX tasks_of_run ON tasks (run, task_id) WHERE run IS NOT NULL;
CREATE INDEX tasks_open_of_run ON tasks (run, shelf) WHERE run IS NOT NULL;

CREATE TABLE links (
  task  TEXT COLLATE "C" NOT NULL,
  other TEXT COLLATE "C" NOT NULL,
  kind  TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (task, other)
);
CREATE INDEX links_back ON links (other, kind, task);

CREATE TABLE comments (
  id   TEXT COLLATE "C" PRIMARY KEY,
  seq  BIGINT NOT NULL,
  task TEXT COLLATE "C" NOT NULL,
  doc  TEXT COLLATE "C" NOT NULL
);
CREATE INDEX comments_of_task ON comments (task, seq);

CREATE TABLE runs (
  id    TEXT COLLATE "C" PRIMARY KEY,
  seq   BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  doc   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX runs_by_age ON runs (seq);

-- No running counts: a shared counter row would make writers wait for each other.
