"""The form of the tree: which module may import which, how large things grow, what never stands in the package."""

import ast
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = sorted((ROOT / "falcon_rm").rglob("*.py"))

LONGEST_MODULE, LONGEST_FUNCTION = 400, 70

IMPURE = {
    "asyncio", "builtins", "concurrent", "glob", "http", "io", "locale", "logging", "multiprocessing", "os", "pathlib",
    "platform", "random", "secrets", "shutil", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile",
    "threading", "time", "urllib.request", "uuid",
}  # fmt: skip
"""Of the standard library, what the core leaves alone: input, output, clocks, chance, threads, the environment."""

CORE_LIBRARIES = {"attrs", "cattrs", "falcon_rm.core"}

SHELL = ("falcon_rm.observe", "falcon_rm.apply", "falcon_rm.loop", "falcon_rm.cli", "falcon_rm.report")

FENCES = {
    ("falcon_rm/cloud/retry.py", "_carry"): "raised again in the thread that waits for the answer",
    ("falcon_rm/core/plan.py", "plan"): "one job: it is unknown in this pass, the others go on",
    ("falcon_rm/observe.py", "_carry"): "one cluster: it is unknown in this pass, the others go on",
    ("falcon_rm/loop.py", "_act"): "one action: the others go on, the next pass looks again",
    ("falcon_rm/loop.py", "run"): "one pass: the next one starts from nothing",
}
"""Where one job, one cluster or one pass is fenced off by `except Exception`: (file, function) -> why."""


def sources() -> list[Path]:
    """Return every Python file of the package and of hack/, with or without an ending."""
    found = set(PACKAGE)
    for path in (ROOT / "hack").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            with path.open("rb") as file:
                first = file.readline()
            if path.suffix == ".py" or (first.startswith(b"#!") and b"python" in first):
                found.add(path)
    return sorted(found)


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree(path: Path) -> ast.Module:
    """Return the parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[str]:
    """Yield the name of every module that a file imports, wherever the import stands."""
    modules = {module_name(each) for each in PACKAGE}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else str(node.module) for name in whole)


def within(name: str, *packages: str) -> bool:
    """Return whether *name* is one of *packages*, or lies in one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


def where(path: Path) -> str:
    """Return a file's name for a test's id."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [path for path in PACKAGE if path.parent.name == "core"], ids=where)
def test_core_is_pure(path: Path) -> None:
    """The core imports itself, attrs, cattrs and what is pure of the standard library."""
    for name in imports(path):
        standard = name.split(".")[0] in sys.stdlib_module_names and not within(name, *IMPURE)
        assert standard or within(name, *CORE_LIBRARIES), name


@pytest.mark.parametrize("path", [path for path in PACKAGE if path.parent.name == "cloud"], ids=where)
def test_clouds_know_no_shell(path: Path) -> None:
    """An adapter imports nothing that reads, acts, loops or reports."""
    assert [] == [name for name in imports(path) if name.startswith(SHELL)]


@pytest.mark.parametrize("name", ["observe", "apply", "loop"])
def test_the_pass_knows_ports_only(name: str) -> None:
    """What reads and acts knows the clouds and the database as ports, never as adapters."""
    assert [] == [each for each in imports(ROOT / f"falcon_rm/{name}.py") if within(each, "falcon_rm.cloud")]


@pytest.mark.parametrize("path", PACKAGE, ids=where)
def test_nobody_imports_the_command_line(path: Path) -> None:
    """The command line is imported by itself and by __main__ alone."""
    if not path.stem.startswith("cli") and path.stem != "__main__":
        assert [] == [name for name in imports(path) if name.startswith("falcon_rm.cli")]


@pytest.mark.parametrize("path", sources(), ids=where)
def test_sizes(path: Path) -> None:
    """A module is read in one sitting, and a function fits a screen."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST_MODULE, f"{lines} lines"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", PACKAGE, ids=where)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    """Every module of the package opens with a docstring."""
    assert ast.get_docstring(tree(path))


def is_fence(node: ast.AST) -> bool:
    """Return whether a handler catches everything and does not raise it again."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    broad = any(
        each is None or (isinstance(each, ast.Name) and each.id in {"Exception", "BaseException"}) for each in caught
    )
    last = node.body[-1]
    return broad and not (isinstance(last, ast.Raise) and last.exc is None)


def fences(path: Path, node: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """Yield the functions of a file that catch everything."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef) else function
        if is_fence(child):
            yield where(path), inside
        yield from fences(path, child, inside)


def test_only_known_fences() -> None:
    """Everything is caught only where one job, cluster or pass is fenced off, for a reason that is written down."""
    assert set(FENCES) == {fence for path in PACKAGE for fence in fences(path, tree(path))}


@pytest.mark.parametrize("path", PACKAGE, ids=where)
def test_no_print(path: Path) -> None:
    """The package prints through click and the log only."""
    names = [
        node.func.id for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert "print" not in names


def test_the_wheel_holds_the_package_alone(tmp_path: Path) -> None:
    """A wheel has every module and every migration, and neither tests nor tools."""
    copy = tmp_path / "tree"
    for name in ("falcon_rm", "sql"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, copy / name)
    build = "from setuptools import build_meta; build_meta.build_wheel('..')"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert {where(path) for path in PACKAGE} == {name for name in held if name.endswith(".py")}
    migrations = {path.name for path in (ROOT / "sql").glob("*.sql")}
    assert migrations == {Path(name).name for name in held if name.endswith(".sql")}
