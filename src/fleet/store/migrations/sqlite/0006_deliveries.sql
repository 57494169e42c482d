-- Alerts on their way to channels.
CREATE TABLE deliveries (
  id     TEXT PRIMARY KEY,
  seq    INTEGER NOT NULL,                     -- of the event that first announced it
  state  TEXT NOT NULL,                        -- pending, open (triggered where it can be resolved), closed
  sender TEXT NOT NULL,
  about  TEXT NOT NULL,
  doc    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX deliveries_unfinished ON deliveries (state, seq) WHERE state <> 'closed';
CREATE INDEX deliveries_about ON deliveries (about, seq);
