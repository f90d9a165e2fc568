"""What `hack/proof` runs and how it counts."""

from pathlib import Path

import proof
import pytest

REPORT = """
<testsuites><testsuite>
  <testcase classname="tests.core.test_machine" name="a matrix" time="2.5">
    <properties>
      <property name="planned" value="40"/><property name="executed" value="40"/>
      <property name="planned" value="2"/><property name="executed" value="1"/>
      <property name="other" value="one"/>
    </properties>
    <failure message="no"/>
  </testcase>
  <testcase classname="tests.test_world_machine.TestMachine" name="runTest[one]"/>
  <testcase name="left out"><skipped/></testcase>
  <testcase name="broken"><error message="no"/></testcase>
</testsuite></testsuites>
"""


def test_counts_of_a_report(tmp_path: Path) -> None:
    """What a test said adds up, one that said nothing is one case, and each that failed is a violation."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    shown = [(case.planned, case.executed, case.violations) for _, case in proof.counted(report)]
    assert [(42, 41, 1), (1, 1, 0), (1, 0, 0), (1, 1, 1)] == shown


def test_a_report_of_a_whole_run_is_told_by_tests(tmp_path: Path) -> None:
    """A property has the tests of its folders and files, and those named one by one, with their own seconds."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert proof.Shown(42, 41, 1, 2.5) == proof.told(report, ["core"]) == proof.told(report, ["core/test_machine.py"])
    assert proof.Shown(1, 1, 0, 0) == proof.told(report, ["test_world_machine.py::TestMachine::runTest"])
    assert proof.Shown(0, 0, 0, 0) == proof.told(report, ["test_world_mach", "test_world_machine.py::TestMachine::run"])


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
