-- The same of the audit: by time; its subjects have a key of their own.
ALTER TABLE audit_events ADD KEY audit_events_at (at)
