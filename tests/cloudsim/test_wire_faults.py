"""The faults of the wire: which strikes, and how often."""

from cloudsim.doors_faults import Wire, WireFault, WireFaults


def test_oldest_fault_that_fits_strikes_and_is_counted() -> None:
    """Faults strike by call and target, the oldest first, as often as they were set for."""
    twice = WireFault(Wire.RESET, "kube.list.*", "clusters/alpha", times=2)
    ever = WireFault(Wire.TRICKLE, times=None)
    faults = WireFaults()
    faults.add(twice)
    faults.add(ever)
    struck = [faults.take("kube.list.pods", "p/clusters/alpha/-/pods") for _ in range(4)]

    assert [Wire.RESET, Wire.RESET, Wire.TRICKLE, Wire.TRICKLE] == [fault.wire for fault in struck if fault]
    assert ever == faults.take("kube.list.pods", "p/clusters/beta/-/pods")
    faults.clear()
    assert faults.take("kube.list.pods", "p/clusters/alpha/-/pods") is None


def test_a_reset_loses_the_request_unless_it_has_an_effect() -> None:
    """Only a reset without effect means that the request never arrived."""
    assert [True, False, False] == [
        WireFault(Wire.RESET).lost,
        WireFault(Wire.RESET, effect=True).lost,
        WireFault(Wire.TRICKLE).lost,
    ]
