"""Decides: pure functions over frozen values; nothing here does I/O, reads a clock or logs."""
