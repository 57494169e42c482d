-- How machines answered, counted in stretches of five minutes.
CREATE TABLE probes (
  host     TEXT COLLATE "C" NOT NULL,
  at       BIGINT NOT NULL,                     -- when the stretch begins
  up       BIGINT NOT NULL,
  down     BIGINT NOT NULL,
  unknown  BIGINT NOT NULL,
  ms_total BIGINT NOT NULL,                     -- of the probes that found it up
  ms_most  BIGINT NOT NULL,
  PRIMARY KEY (host, at)
);
