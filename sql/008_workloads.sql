-- Kubernetes Jobs that were, or are about to be, submitted.
CREATE TABLE IF NOT EXISTS workloads (
  cluster_id   CHAR(36)     NOT NULL,
  name         VARCHAR(64)  NOT NULL,
  job_id       VARCHAR(64)  NOT NULL,
  attempt      INT          NOT NULL,
  uid          VARCHAR(64)  NULL,
  requested_at TIMESTAMP(6) NULL,
  stop_at      TIMESTAMP(6) NULL,
  error_kind   ENUM('busy', 'full', 'capacity', 'quota', 'cluster', 'permanent', 'exists', 'gone', 'unknown') NULL,
  error_text   TEXT         NULL,
  error_at     TIMESTAMP(6) NULL,
  PRIMARY KEY (cluster_id, name),
  KEY workloads_job (job_id, attempt),
  KEY workloads_error (error_kind, error_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
