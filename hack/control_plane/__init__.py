"""
Real Kubernetes control planes on loopback, for tests and the demonstration; `hack/kube` is the command.

`build` makes the programs from published Go modules, `plane` runs them, `client` speaks to them, `rights` says what
Falcon may do there.
"""
