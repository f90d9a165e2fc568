"""What `hack/proof` runs and how it counts."""

from pathlib import Path

import proof
import pytest

REPORT = """
<testsuites><testsuite>
  <testcase name="a matrix">
    <properties>
      <property name="planned" value="40"/><property name="executed" value="40"/>
      <property name="planned" value="2"/><property name="executed" value="1"/>
      <property name="other" value="one"/>
    </properties>
    <failure message="no"/>
  </testcase>
  <testcase name="one case"/>
  <testcase name="left out"><skipped/></testcase>
  <testcase name="broken"><error message="no"/></testcase>
</testsuite></testsuites>
"""


def test_counts_of_a_report(tmp_path: Path) -> None:
    """What a test said adds up, one that said nothing is one case, and each that failed is a violation."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    shown = [(case.planned, case.executed, case.violations) for case in proof.counted(report)]
    assert [(42, 41, 1), (1, 1, 0), (1, 0, 0), (1, 1, 1)] == shown


@pytest.mark.parametrize(
    ("shown", "holds"),
    [((2, 2, 0), True), ((2, 1, 0), False), ((2, 2, 1), False), ((0, 0, 0), False)],
)
def test_what_holds(shown: tuple[int, int, int], holds: bool) -> None:
    """A property holds if there were cases, all were executed and none was violated."""
    assert holds is proof.Shown(*shown, seconds=1).holds


def test_every_test_of_the_table_is_there() -> None:
    """R1 to R17 are all there, and so is each test that the table names."""
    tests = proof.tests_of_properties()
    assert [f"R{number}" for number in range(1, 18)] == list(tests)
    for file, _, test in (one.partition("::") for files in proof.FURTHER.values() for one in files):
        assert (proof.TESTS / file).exists()
        assert not test or f"def {test}(" in (proof.TESTS / file).read_text(encoding="utf-8")
