-- Everything else worth keeping, and who did it. A row with a `digest` is written once.
CREATE TABLE IF NOT EXISTS audit_events (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  at         TIMESTAMP(6) NULL,
  kind       VARCHAR(32)  NOT NULL,
  subject    VARCHAR(255) NOT NULL,
  text       TEXT         NOT NULL,
  by_user    VARCHAR(255) NOT NULL,
  by_process VARCHAR(255) NOT NULL,
  digest     CHAR(64)     NULL,
  PRIMARY KEY (id),
  UNIQUE KEY audit_events_digest (digest),
  KEY audit_events_subject (subject, id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
