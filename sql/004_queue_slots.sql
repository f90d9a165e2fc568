-- One row a queue, made before anybody locks it: at most one job of the queue acquires.
CREATE TABLE IF NOT EXISTS queue_slots (
  cluster_id CHAR(36)     NOT NULL,
  topology   VARCHAR(32)  NOT NULL,
  holder     VARCHAR(64)  NULL,
  held_at    TIMESTAMP(6) NULL,
  PRIMARY KEY (cluster_id, topology)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
