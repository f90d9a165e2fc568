"""Rows that are deleted and inserted anew under the same id."""

from world import Falcon


def test_job_that_is_inserted_anew_runs_under_the_next_name() -> None:
    """Its first name was borne: the attempt is passed over, and the job runs all the same."""
    falcon = Falcon()
    falcon.submit("j1")
    falcon.settle()
    falcon.store.delete_row("j1")
    falcon.submit("j1")
    falcon.settle()
    assert ("Succeeded", 2) == (falcon.state("j1"), falcon.job("j1").attempt)
    assert 2 == len(set(falcon.creates()))
