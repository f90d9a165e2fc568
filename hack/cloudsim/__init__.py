"""
A simulated Google Cloud for tests and the demonstration: GKE, Compute and Kubernetes in memory, on one clock.

`World` is the whole of it; `direct.DirectClouds` meets the product's ports on it without sockets; the servers put it
behind the real protocols. It behaves as reference/gke.md says, not as is handy.
"""
