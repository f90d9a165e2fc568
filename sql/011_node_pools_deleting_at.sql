-- Since when a pool is on its way out: idle time ends there.
ALTER TABLE node_pools ADD COLUMN deleting_at TIMESTAMP(6) NULL AFTER idle_at
