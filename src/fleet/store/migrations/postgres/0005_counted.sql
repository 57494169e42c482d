-- Nothing is counted here, so no event says what it changes in the counts; only the second half of this step is needed.
-- Since a lane names the directory that is changed in place, a task that was queued before was found in none.
UPDATE tasks SET lane = left(lane, -1) || ',' || coalesce(to_json(
    CASE WHEN doc::json #>> '{awaits,kind}' IS NOT NULL OR doc::json #>> '{terms,isolation}' = 'worktree'
      OR ((doc::json #>> '{terms,tool_profile}' = 'read-only' OR doc::json ->> 'coder' = 'command')
        AND doc::json #>> '{terms,writable_paths}' IS NULL) THEN NULL
    ELSE doc::json ->> 'cwd' END)::text, 'null') || ']'
  WHERE json_array_length(lane::json) = 4;
