"""Chance in a simulated world: one seeded source, whose copy costs nothing until one of the two is drawn from."""

import random
from collections.abc import Sequence


class Chance:
    """A source of chance; equal seeds draw the same."""

    def __init__(self, seed: int | str = 0) -> None:
        self._source = random.Random(seed)
        self._is_shared = False

    def copy(self) -> "Chance":
        """Return a source that will draw what this one will."""
        made = Chance.__new__(Chance)
        made._source = self._source
        made._is_shared = self._is_shared = True
        return made

    def seed(self, seed: int | str) -> None:
        """Begin anew."""
        self._source, self._is_shared = random.Random(seed), False

    def getrandbits(self, bits: int) -> int:
        """Return a number of so many bits."""
        return self._own().getrandbits(bits)

    def randrange(self, first: int, beyond: int | None = None) -> int:
        """Return a number from one on, or from 0, to one below another."""
        return self._own().randrange(first) if beyond is None else self._own().randrange(first, beyond)

    def choice(self, among: Sequence[str]) -> str:
        """Return one of several."""
        return self._own().choice(among)

    def uniform(self, least: float, most: float) -> float:
        """Return a number between two."""
        return self._own().uniform(least, most)

    def _own(self) -> random.Random:
        if self._is_shared:
            source = random.Random.__new__(random.Random)
            source.setstate(self._source.getstate())
            self._source, self._is_shared = source, False
        return self._source
