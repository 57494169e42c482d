-- Alerts on their way to channels.
CREATE TABLE deliveries (
  id     TEXT COLLATE "C" PRIMARY KEY,
  seq    BIGINT NOT NULL,                     -- of the event that first announced it
  state  TEXT COLLATE "C" NOT NULL,           -- pending, open (triggered where it can be resolved), closed
  sender TEXT COLLATE "C" NOT NULL,
  about  TEXT COLLATE "C" NOT NULL,
  doc    TEXT COLLATE "C" NOT NULL
);
CREATE INDEX deliveries_unfinished ON deliveries (state, seq) WHERE state <> 'closed';
CREATE INDEX deliveries_about ON deliveries (about, seq);
