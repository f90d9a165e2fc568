-- Who held which pool from when to when; stands on its own when rows of `job` are deleted.
CREATE TABLE IF NOT EXISTS pool_leases (
  id          BIGINT       NOT NULL AUTO_INCREMENT,
  cluster_id  CHAR(36)     NOT NULL,
  pool        VARCHAR(64)  NOT NULL,
  job_id      VARCHAR(64)  NOT NULL,
  attempt     INT          NOT NULL,
  actor       VARCHAR(255) NOT NULL,
  exp_id      VARCHAR(255) NOT NULL DEFAULT '',
  owner       VARCHAR(255) NOT NULL DEFAULT '',
  mode        VARCHAR(16)  NOT NULL,
  reservation VARCHAR(512) NULL,
  from_at     TIMESTAMP(6) NULL,
  until_at    TIMESTAMP(6) NULL,
  ended       VARCHAR(16)  NULL,
  ended_text  TEXT         NULL,
  PRIMARY KEY (id),
  KEY pool_leases_pool (cluster_id, pool, until_at),
  KEY pool_leases_job (job_id, ended),
  KEY pool_leases_ended (ended, until_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
