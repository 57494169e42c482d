-- Who runs what, and what came of it.
CREATE TABLE sessions (
  id         TEXT COLLATE "C" PRIMARY KEY,
  seq        BIGINT NOT NULL,
  state      TEXT COLLATE "C" NOT NULL,
  epoch      BIGINT NOT NULL,
  supervisor TEXT COLLATE "C" NOT NULL,
  progress   TEXT COLLATE "C" NOT NULL,
  doc        TEXT COLLATE "C" NOT NULL
);

-- The sequence of a receipt is that of the event that brought it, so those of a task are found through its events.
CREATE TABLE receipts (
  seq  BIGINT PRIMARY KEY,
  task TEXT COLLATE "C" NOT NULL,
  run  TEXT COLLATE "C",
  doc  TEXT COLLATE "C" NOT NULL
);
CREATE INDEX receipts_of_run ON receipts (run, seq) WHERE run IS NOT NULL;

CREATE TRIGGER receipts_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON receipts EXECUTE FUNCTION refuse();

CREATE TABLE supervisors (
  id          TEXT COLLATE "C" PRIMARY KEY,
  left_at     BIGINT,
  lease_until BIGINT,                         -- by the database's clock
  doc         TEXT COLLATE "C" NOT NULL
);

CREATE TABLE intents (
  id      TEXT COLLATE "C" PRIMARY KEY,
  seq     BIGINT NOT NULL,
  target  TEXT COLLATE "C" NOT NULL,
  pending BIGINT NOT NULL,
  doc     TEXT COLLATE "C" NOT NULL
);
CREATE INDEX intents_pending ON intents (seq) WHERE pending = 1;
CREATE INDEX intents_of_target ON intents (target, seq);

CREATE TABLE hosts (
  name TEXT COLLATE "C" PRIMARY KEY,
  doc  TEXT COLLATE "C" NOT NULL
);
