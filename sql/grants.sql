-- Two roles. Run by an administrator in Falcon's database, once `job` and Falcon's tables are there; grant them to users
-- with: GRANT falcon_controller TO 'falcon'@'%'; and make them the default role of those users.
CREATE ROLE falcon_controller, falcon_upstream;

-- The controller: reads everything, writes of `job` only its own columns, and its own tables. It deletes nothing
-- but a cluster that an operator removes, and its queues.
GRANT SELECT ON job TO falcon_controller;
GRANT UPDATE (
  status, reason, message, cluster_id, topology, node_pool_name, job_uid, supply_mode, attempt, pool_failures, losses,
  retry_at, outcome, queued_at, provisioning_at, dispatched_at, started_at, finished_at, aborted_at, version
) ON job TO falcon_controller;
GRANT SELECT, INSERT, UPDATE, DELETE ON clusters TO falcon_controller;
GRANT SELECT, INSERT, UPDATE, DELETE ON cluster_health TO falcon_controller;
GRANT SELECT, INSERT, UPDATE, DELETE ON queue_slots TO falcon_controller;
GRANT SELECT, INSERT, UPDATE, DELETE ON queue_turns TO falcon_controller;
GRANT SELECT, INSERT, UPDATE ON node_pools TO falcon_controller;
GRANT SELECT, INSERT, UPDATE ON pool_leases TO falcon_controller;
GRANT SELECT, INSERT, UPDATE ON workloads TO falcon_controller;
GRANT SELECT, INSERT ON job_events TO falcon_controller;
GRANT SELECT, INSERT ON audit_events TO falcon_controller;
GRANT SELECT ON falcon_meta TO falcon_controller;

-- Upstream, and whoever runs `falcon-rm submit` and `falcon-rm abort`.
GRANT SELECT, DELETE ON job TO falcon_upstream;
GRANT INSERT (id, name, actor, spec, priority, timeout_seconds, artifact_path, created_at, status) ON job TO falcon_upstream;
GRANT UPDATE (status, aborting_at) ON job TO falcon_upstream;
