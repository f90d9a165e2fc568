"""Falcon places batch jobs from MySQL on TPU node pools of GKE and gives the chips up again."""

__version__ = "0.1.0"
