"""The traces of a plan: each once, whatever it is called and however often it is used."""

import hashlib
from fractions import Fraction
from pathlib import Path

from thalweg.scenario import traces


class Traces:
    """Traces by the hash of their content."""

    def __init__(self) -> None:
        """Begin with none."""
        self.by_name: dict[str, list[int]] = {}
        self._known: dict[Path, tuple[str, Fraction]] = {}

    def add(self, file: Path) -> tuple[str, Fraction]:
        """Read a trace; gives its name in the plan and its mean rate in bits per second."""
        if file not in self._known:
            times = traces.read(file)
            digest = hashlib.sha256("\n".join(map(str, times)).encode("ascii")).hexdigest()
            self.by_name[digest[:16]] = list(times)
            self._known[file] = digest[:16], traces.mean_rate_bps(times)
        return self._known[file]
