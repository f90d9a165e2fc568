"""
Real Kubernetes control planes on loopback, for tests and the demonstration.

`build` makes the programs from published Go modules, `plane` runs them, `client` speaks to them, `rights` says what
Falcon may do there. `hack/kube/run` is the command.
"""
