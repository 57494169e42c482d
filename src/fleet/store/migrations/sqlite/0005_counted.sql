-- What an event changes in the counts stands in its own row: the page of that is written anyway, the one of a count is not.
ALTER TABLE events ADD COLUMN counted TEXT;    -- [[scope, key, by], ...], of this event and those after it in its commit

-- Up to which event the counts have taken that over.
INSERT INTO counts (scope, key, n) SELECT '', 'taken', coalesce(max(seq), 0) FROM events;

-- Since a lane names the directory that is changed in place, a task that was queued before was found in none.
UPDATE tasks SET lane = substr(lane, 1, length(lane) - 1) || ',' || json_quote(
    CASE WHEN doc ->> '$.awaits.kind' IS NOT NULL OR doc ->> '$.terms.isolation' = 'worktree'
      OR ((doc ->> '$.terms.tool_profile' = 'read-only' OR doc ->> '$.coder' = 'command')
        AND doc ->> '$.terms.writable_paths' IS NULL) THEN NULL
    ELSE doc ->> '$.cwd' END) || ']'
  WHERE json_array_length(lane) = 4;
