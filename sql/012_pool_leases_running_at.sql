-- Since when all pods of the job ran on the pool: waiting ends there.
ALTER TABLE pool_leases ADD COLUMN running_at TIMESTAMP(6) NULL AFTER from_at
