"""Touches: one library a file; every call has a deadline, every error is translated at the border."""
