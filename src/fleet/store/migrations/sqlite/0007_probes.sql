-- How machines answered, counted in stretches of five minutes.
CREATE TABLE probes (
  host     TEXT NOT NULL,
  at       INTEGER NOT NULL,                     -- when the stretch begins
  up       INTEGER NOT NULL,
  down     INTEGER NOT NULL,
  unknown  INTEGER NOT NULL,
  ms_total INTEGER NOT NULL,                     -- of the probes that found it up
  ms_most  INTEGER NOT NULL,
  PRIMARY KEY (host, at)
) WITHOUT ROWID;
