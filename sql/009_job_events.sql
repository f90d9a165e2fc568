-- One row a change of status or reason, written in the transaction that makes the change.
CREATE TABLE IF NOT EXISTS job_events (
  id          BIGINT       NOT NULL AUTO_INCREMENT,
  job_id      VARCHAR(64)  NOT NULL,
  at          TIMESTAMP(6) NULL,
  from_status VARCHAR(16)  NOT NULL,
  from_reason VARCHAR(64)  NULL,
  to_status   VARCHAR(16)  NOT NULL,
  to_reason   VARCHAR(64)  NULL,
  why         TEXT         NOT NULL,
  message     TEXT         NULL,
  cluster_id  CHAR(36)     NULL,
  pool        VARCHAR(64)  NULL,
  attempt     INT          NOT NULL,
  PRIMARY KEY (id),
  KEY job_events_job (job_id, id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
