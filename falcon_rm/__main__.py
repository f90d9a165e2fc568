"""Run `python -m falcon_rm` like `falcon-rm`."""

from falcon_rm.cli import main

main()
