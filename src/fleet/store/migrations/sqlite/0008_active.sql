-- The runs that go on, found at the same cost however many have ended.
CREATE INDEX runs_active ON runs (seq) WHERE state = 'active';
