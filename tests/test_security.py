"""
What the controller's code may not do, read off it: reach a shell, run what it was given, build SQL of values.

The behaviour is shown beside it: hostile values in a database in tests/cloud/test_security_sql.py, in a pod in
tests/core/test_security_pod.py.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import falcon_rm

PACKAGE = Path(falcon_rm.__file__).parent
MODULES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}

PROGRAM_MODULES = {"subprocess", "pty", "pickle", "marshal", "shelve", "ctypes", "code", "codeop", "runpy"}
PROGRAM_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "yaml.load_all", "asyncio.create_subprocess_shell", "asyncio.create_subprocess_exec",
}  # fmt: skip
PROGRAM_PREFIXES = ("os.exec", "os.spawn", "os.posix_spawn", "os.fork")
SAFE = {("submission.py", "yaml.load_all")}
"""With a loader that is a subclass of yaml.SafeLoader; a test below holds it to that."""

SQL = re.compile(
    r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|REPLACE INTO|CREATE|ALTER|DROP|GRANT|SET SESSION)\s", re.DOTALL
)

PIECES: dict[str, set[str]] = {
    "database.py": {"table", "', '.join(settings)"},
    "people.py": {"', '.join(row)", "', '.join(['%s'] * len(row))", "sets", "table"},
    "rows.py": {"columns", "rest"},
    "schema.py": {"view", "name", "needed.ddl"},
    "store.py": {"sets", "missing", "since", "guard", "named", "dispatched"},
    "transaction.py": {"', '.join(sets)"},
}
"""
Module of falcon_rm/cloud -> what is put into its SQL beside constants: names of tables and columns that stand in the
code, and as many `%s` as there are values. Constants, in upper case, and functions of names are taken everywhere.
"""
CONSTANT = re.compile(r"[A-Z_]+")


def calls(tree: ast.AST) -> Iterator[str]:
    """Yield the names of what is called, as they are written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".", maxsplit=1)[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".", maxsplit=1)[0]


def test_nothing_reaches_a_shell_or_runs_what_it_was_given() -> None:
    """No module of the controller starts a program, evaluates text, or loads objects from it."""
    found = [
        (module, name)
        for module, tree in MODULES.items()
        for name in (*imports(tree), *calls(tree))
        if name in PROGRAM_MODULES or name in PROGRAM_CALLS or name.startswith(PROGRAM_PREFIXES)
    ]
    assert sorted(SAFE) == sorted(found)


def test_yaml_is_loaded_by_a_safe_loader() -> None:
    """The one loader that reads what users wrote knows plain values only."""
    from yaml import SafeLoader

    from falcon_rm import submission

    (call,) = (
        node
        for node in ast.walk(MODULES["submission.py"])
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "yaml.load_all"
    )
    assert ["_Loader"] == [ast.unparse(word.value) for word in call.keywords if word.arg == "Loader"]
    assert issubclass(submission._Loader, SafeLoader)


def made_of_pieces(tree: ast.AST) -> Iterator[str]:
    """Yield what is put into SQL that is made of pieces: by f-strings, by `%`, by format, by `+`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            words = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            if SQL.search(words):
                yield from (ast.unparse(part.value) for part in node.values if isinstance(part, ast.FormattedValue))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.Add):
            left = node.left
            if isinstance(left, ast.Constant) and isinstance(left.value, str) and SQL.search(left.value):
                yield ast.unparse(node.right)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            text = node.func.value
            if isinstance(text, ast.Constant) and SQL.search(str(text.value)):
                yield from (ast.unparse(argument) for argument in node.args)


def test_sql_is_made_of_words_of_the_code_alone() -> None:
    """No value is ever put into the text of a statement: only names that stand in the code, and placeholders."""
    strange = {
        (module, piece)
        for module, tree in MODULES.items()
        for piece in made_of_pieces(tree)
        if not CONSTANT.fullmatch(piece) and piece not in PIECES.get(module.removeprefix("cloud/"), set())
    }
    assert set() == strange


def test_every_piece_that_is_allowed_is_there() -> None:
    """The list of pieces holds nothing that is gone."""
    there = {
        (module.removeprefix("cloud/"), piece) for module, tree in MODULES.items() for piece in made_of_pieces(tree)
    }
    assert set() == {(module, piece) for module, pieces in PIECES.items() for piece in pieces} - there
