-- What the last pass knew of a cluster: why it cannot be used, and the zone its pools go to.
CREATE TABLE IF NOT EXISTS cluster_health (
  cluster_id CHAR(36)     NOT NULL,
  problem    TEXT         NULL,
  zone       VARCHAR(64)  NULL,
  at         TIMESTAMP(6) NULL,
  PRIMARY KEY (cluster_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
