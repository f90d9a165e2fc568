-- When each actor was last served in a queue: whose turn it is.
CREATE TABLE IF NOT EXISTS queue_turns (
  cluster_id CHAR(36)     NOT NULL,
  topology   VARCHAR(32)  NOT NULL,
  actor      VARCHAR(255) NOT NULL,
  served_at  TIMESTAMP(6) NULL,
  PRIMARY KEY (cluster_id, topology, actor)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
