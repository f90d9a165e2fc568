-- The registry: one INSERT adds a cluster. What is NULL is worked out.
CREATE TABLE IF NOT EXISTS clusters (
  id                   CHAR(36)     NOT NULL,
  name                 VARCHAR(128) NOT NULL,
  project              VARCHAR(64)  NOT NULL,
  location             VARCHAR(64)  NOT NULL,
  tpu_type             VARCHAR(16)  NOT NULL,
  gcs_bucket           VARCHAR(255) NULL,
  default_reservation  VARCHAR(512) NULL,
  status               ENUM('active', 'maintenance', 'offline') NOT NULL DEFAULT 'active',
  created_at           TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6),
  gke_name             VARCHAR(64)  NULL,
  zone                 VARCHAR(64)  NULL,
  node_service_account VARCHAR(255) NULL,
  endpoint             ENUM('ip', 'dns') NULL,
  PRIMARY KEY (id),
  UNIQUE KEY clusters_name (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
