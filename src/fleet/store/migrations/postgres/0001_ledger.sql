-- The ledger: every fact, once, for good.
CREATE TABLE events (
  seq     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subject TEXT COLLATE "C" NOT NULL,
  kind    TEXT COLLATE "C" NOT NULL,
  at      BIGINT NOT NULL,
  hash    BYTEA NOT NULL,                       -- sha256(hash of the subject's previous event || body)
  body    TEXT COLLATE "C" NOT NULL,
  xid     XID8 NOT NULL                         -- with seq, the cursor that misses nothing: see place_event
);
CREATE UNIQUE INDEX events_of_subject ON events (subject, seq);
CREATE INDEX events_feed ON events (xid, seq);

-- A transaction takes its number before it waits for a row, so what happened later can have the lower number.
-- The feed is in the order of (xid, seq): an event is never placed before one that its writer could see.
CREATE FUNCTION place_event() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  NEW.xid := greatest(
    pg_current_xact_id(),
    (SELECT xid FROM events ORDER BY xid DESC LIMIT 1)
  );
  RETURN NEW;
END $$;
CREATE TRIGGER events_placed BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION place_event();

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON events EXECUTE FUNCTION refuse();

-- How far each reader of the feed has come.
CREATE TABLE cursors (
  name       TEXT COLLATE "C" PRIMARY KEY,
  position   TEXT COLLATE "C" NOT NULL,
  updated_at BIGINT NOT NULL
);
