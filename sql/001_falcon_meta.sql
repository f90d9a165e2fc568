-- What belongs to this database as a whole: the steps that were taken, the instance's id.
CREATE TABLE IF NOT EXISTS falcon_meta (
  name  VARCHAR(64)  NOT NULL,
  value VARCHAR(255) NOT NULL,
  at    TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
