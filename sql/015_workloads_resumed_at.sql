-- A Kubernetes Job is made suspended, and let go once its uid is in the row. Jobs of before were never suspended.
ALTER TABLE workloads ADD COLUMN resumed_at TIMESTAMP(6) NULL AFTER requested_at
