-- How the past is searched: by time, by pool, by cluster.
ALTER TABLE job_events ADD KEY job_events_at (at), ADD KEY job_events_pool (pool, id), ADD KEY job_events_cluster (cluster_id, id)
