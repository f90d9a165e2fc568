"""The two database roles of sql/grants.sql on a test's database: the tests of the store run under them, not as root."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

import pytest
from attrs import evolve, frozen

from falcon_rm.cloud.database import Address, Database, parse_url
from falcon_rm.cloud.schema import sql_files

FALCON, UPSTREAM = "falcon_controller", "falcon_upstream"
SHORT = 8
"""So many letters tell the roles apart; with the database's own they make a name that any server takes."""


def statements() -> list[str]:
    """Return the statements of grants.sql, each on one line."""
    lines = [line for line in sql_files()["grants.sql"].splitlines() if not line.startswith("--")]
    return [" ".join(each.split()) for each in "\n".join(lines).split(";") if each.strip()]


@frozen
class Roles:
    """A database with the roles, a user of each, and an administrator."""

    administrator: Database

    def name(self, role: str) -> str:
        """Return what a role is called on this server, where each database has its own."""
        return role[:SHORT] + self.administrator.address.database[-10:]

    def address(self, role: str) -> Address:
        """Return the database's address for a user who has nothing but a role."""
        return evolve(self.administrator.address, user=f"{self.name(role)}u", password="secret")

    def url(self, role: str) -> str:
        """Return the database's URL for that user."""
        at = self.address(role)
        options = f"?unix_socket={quote(at.unix_socket, safe='/')}" if at.unix_socket else ""
        return f"mysql://{at.user}:{at.password}@{at.host}:{at.port}/{at.database}{options}"

    def run(self, statement: str) -> None:
        """Carry out a statement of the administrator's, the roles by their names in the file."""
        for role in (FALCON, UPSTREAM):
            statement = statement.replace(role, self.name(role))
        self.administrator.rows(statement)

    def make(self) -> None:
        """Make them as grants.sql says, and a user of each."""
        for statement in statements():
            self.run(statement)
        for role in (FALCON, UPSTREAM):
            self.run(f"CREATE USER {role}u IDENTIFIED BY 'secret'")
            self.give(role)

    def give(self, role: str) -> None:
        """Give its user a role, at once and by default."""
        ((version,),) = self.administrator.rows("SELECT VERSION()")
        to = "FOR" if "MariaDB" in str(version) else "TO"
        self.run(f"GRANT {role} TO {role}u")
        self.run(f"SET DEFAULT ROLE {role} {to} {role}u")

    def drop(self) -> None:
        """Remove them."""
        for role in (FALCON, UPSTREAM):
            self.run(f"DROP USER IF EXISTS {role}u")
            self.run(f"DROP ROLE IF EXISTS {role}")
        self.administrator.close()


@pytest.fixture
def roles(database: str) -> Iterator[Roles]:
    """Both roles on a fresh database."""
    made = Roles(Database(parse_url(database)))
    try:
        made.make()
        yield made
    finally:
        made.drop()


@pytest.fixture
def controller_url(roles: Roles) -> str:
    """The URL of a fresh database for a user who has nothing but the controller's role."""
    return roles.url(FALCON)


def url_for(controller_url: str, arguments: Sequence[str]) -> str:
    """Return the URL by which a command comes: upstream submits and aborts, the controller's role does the rest."""
    if arguments[:1] in (("submit",), ("abort",)):
        return controller_url.replace(f"//{FALCON[:SHORT]}", f"//{UPSTREAM[:SHORT]}")
    return controller_url
