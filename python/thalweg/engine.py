"""Finds and queries `thalweg-engine`."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from thalweg.engine_output import EngineCapability, EngineRefusal, Live, PlayedPolicies
from thalweg.errors import Exit, ThalwegError, shortage

BINARY = "thalweg-engine"
VARIABLE = "THALWEG_ENGINE"
"""Environment variable that names the binary to use."""

DEFAULT = "sim"

FORMAT = 1
"""Supported format version of the output of `capabilities`."""

ANSWER_WITHIN_S = 300
"""Timeout for the binary's answers, except for simulations of policies. To probe the machine, the binary may boot a
guest, which is slow without hardware virtualization.
"""

PLAYED = "thalweg-engine policy simulate: "
"""Prefix of the binary's messages about invalid options of `policy simulate`."""


@dataclass(frozen=True)
class Range:
    """Valid values of a parameter of a congestion control."""

    low: float
    high: float
    is_whole: bool = False

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and not (self.is_whole and value % 1)

    def __str__(self) -> str:
        """Return the valid values as text.

        >>> str(Range(1, 1.9)), str(Range(0, 2, is_whole=True))
        ('a number from 1 to 1.9', 'a whole number from 0 to 2')
        """
        return f"a {'whole ' if self.is_whole else ''}number from {self.low:.10g} to {self.high:.10g}"


@dataclass(frozen=True)
class Algorithm:
    """A congestion control that an engine has."""

    name: str
    about: str
    params: Mapping[str, str]
    """Description of each parameter, with its range and default."""
    ranges: Mapping[str, Range] = field(default_factory=dict)


@dataclass(frozen=True)
class Lack:
    """A congestion control that an engine lacks now, but could have on this machine."""

    why: str
    hint: str


@dataclass(frozen=True)
class Engine:
    """Capabilities of one engine on this machine."""

    name: str
    about: str
    version: str
    available: bool
    why_not: str | None
    algorithms: Mapping[str, Algorithm]
    honours: frozenset[str]
    generations: Mapping[str, str] | None = None
    """Generations of Linux nearest to the kernels of its `senders` and of its `receiver`; None: it has no
    kernel, or they are unknown.
    """
    is_real_time: bool = False
    """Whether an engine runs in real time: a second of an experiment takes a second."""
    lacks: Mapping[str, Lack] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Reason why the engine cannot run here, in one line; empty if it can."""
        return self._why_not()[0]

    @property
    def remedy(self) -> str:
        """Steps that fix the problem, one per line; empty if unknown."""
        return self._why_not()[1]

    def _why_not(self) -> tuple[str, str]:
        """Split the binary's message: the reason, then the remedy, on separate lines or after semicolons."""
        if self.available:
            return "", ""
        answer = (self.why_not or "without a reason").strip()
        first, *others = answer.splitlines() if "\n" in answer else answer.split("; ")
        steps = (line.strip().removeprefix("hint:").strip() for line in others)
        return first.strip().rstrip("."), "\n".join(step for step in steps if step)


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of the binary on this machine."""

    binary: Path
    version: str
    engines: Mapping[str, Engine]


def find() -> Path:
    """Find the binary: `THALWEG_ENGINE`, then beside this Python, then the PATH.

    Raises:
        ThalwegError: If it is missing, or the variable is set but names no program.
    """
    configured = os.environ.get(VARIABLE)
    if configured:
        if shutil.which(configured):
            return Path(str(shutil.which(configured)))
        raise ThalwegError(
            "no-engine",
            f"{VARIABLE} is not the path of a program: `{configured}`",
            place=VARIABLE,
            expected=f"the path of {BINARY}",
            hint=f"unset {VARIABLE}, or correct it",
            exit_code=Exit.MISSING,
        )
    sibling = Path(sys.executable).parent / BINARY
    if os.access(sibling, os.X_OK):
        return sibling
    if on_path := shutil.which(BINARY):
        return Path(on_path)
    raise ThalwegError(
        "no-engine",
        f"the program {BINARY} is not installed",
        expected=f"{BINARY} in the folder of {sys.executable}, on the PATH, or set by {VARIABLE}",
        hint=f"pip install --force-reinstall thalweg\n"
        f"in a source tree: cargo build --release --bin {BINARY} && export {VARIABLE}=$PWD/target/release/{BINARY}",
        exit_code=Exit.MISSING,
    )


def capabilities(name: str | None = None) -> Capabilities:
    """Query the capabilities of the binary's engines.

    Args:
        name: Report only this engine, without probing the machine for the others; None: report all engines.

    Raises:
        ThalwegError: If the binary is missing or its answer is invalid.
    """
    binary = find()
    answer = _run_binary(binary, ["capabilities", "--json", *(["--engine", name] if name is not None else [])])
    try:
        parsed = json.loads(answer)
        if parsed["format"] != FORMAT:
            raise _bad_engine(binary, f"it uses format {parsed['format']}, not {FORMAT}")
        engines = {engine["name"]: _engine(engine) for engine in parsed["engines"]}
        return Capabilities(binary, str(parsed["version"]), engines)
    except (ValueError, KeyError, TypeError):
        raise _bad_engine(binary, "its output cannot be parsed") from None


def refusals(document: str) -> list[ThalwegError]:
    """Ask the binary why this machine cannot run a plan, a JSON document; empty if it can.

    Raises:
        ThalwegError: If the binary is missing or its answer is invalid.
    """
    binary = find()
    answer = _run_binary(binary, ["check", "--plan", "-"], stdin=document)
    try:
        refused: list[EngineRefusal] = json.loads(answer)["refused"]
        return [ThalwegError(error["code"], error["message"], hint=error["hint"] or None) for error in refused]
    except (ValueError, KeyError, TypeError):
        raise _bad_engine(binary, "its output cannot be parsed") from None


def live(seconds: int) -> Live:
    """Monitor this machine and its connections with the binary.

    Raises:
        ThalwegError: If the binary is missing or fails.
    """
    binary = find()
    answer = _run_binary(binary, ["live", "--seconds", str(seconds)], within_s=seconds + ANSWER_WITHIN_S)
    try:
        sample: Live = json.loads(answer)
    except ValueError:
        raise _bad_engine(binary, "its output cannot be parsed") from None
    return sample


def play_policies(seeds: int, names: Sequence[str], retransmit_price: float = 1.0) -> PlayedPolicies:
    """Simulate policies with the binary; an empty list selects all policies.

    With a price of 1, retransmitting a tenth of all segments costs about as much as a completion time that is a tenth
    longer.

    Raises:
        ThalwegError: If the binary is missing, or it rejects an option or fails.
    """
    binary = find()
    policy_options = [word for name in names for word in ("--policy", name)]
    price = ["--retransmit-price", str(retransmit_price)]
    command = [str(binary), "policy", "simulate", "--seeds", str(seeds), *price, *policy_options]
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise shortage(error) or _bad_engine(binary, (error.strerror or str(error)).lower()) from None
    if answer.returncode != 0:
        first_line = next(iter(answer.stderr.strip().splitlines()), f"it ended with exit code {answer.returncode}")
        if not first_line.startswith(PLAYED):
            raise _bad_engine(binary, first_line)
        problem, _, expected = first_line.removeprefix(PLAYED).partition("; expected ")
        raise ThalwegError("unknown-policy", problem, place="--policy", expected=expected or None)
    try:
        results: PlayedPolicies = json.loads(answer.stdout)
    except ValueError:
        raise _bad_engine(binary, "its output cannot be parsed") from None
    return results


def choose(name: str, capabilities: Capabilities, option: str = "--engine") -> Engine:
    """Return an engine by name; `option` is the place of its errors.

    Raises:
        ThalwegError: If the name is unknown, or the engine cannot run here.
    """
    engine = capabilities.engines.get(name)
    if engine is None:
        listed = ", ".join(capabilities.engines)
        raise ThalwegError(
            "unknown-engine",
            f"there is no engine `{name}`",
            place=option,
            found=name,
            expected=f"one of {listed}" if len(capabilities.engines) > 1 else listed,
            hint="`thalweg doctor` lists the requirements of each engine",
        )
    if not engine.available:
        raise ThalwegError(
            "engine-unavailable",
            f"the engine `{name}` cannot run here: {engine.reason}",
            place=option,
            found=name,
            hint=engine.remedy or "`thalweg doctor` shows what to do",
            exit_code=Exit.MISSING,
        )
    return engine


def schema(subject: str) -> dict[str, JsonValue]:
    """Query the binary for the schema of a subject, such as `plan`."""
    return dict(json.loads(_run_binary(find(), ["schema", subject])))


def _engine(capability: EngineCapability) -> Engine:
    algorithms = {
        algorithm["name"]: Algorithm(
            algorithm["name"],
            algorithm.get("about", ""),
            algorithm["params"],
            {
                name: Range(valid["min"], valid["max"], valid["whole"])
                for name, valid in algorithm.get("ranges", {}).items()
            },
        )
        for algorithm in capability["cc"]
    }
    return Engine(
        name=capability["name"],
        about=capability["about"],
        version=str(capability["version"]),
        available=bool(capability["available"]),
        why_not=capability["why_not"],
        algorithms=algorithms,
        honours=frozenset(capability["honours"]),
        generations={host: name for host, name in (capability.get("generations") or {}).items() if name} or None,
        is_real_time=bool(capability.get("real_time", False)),
        lacks={lack["name"]: Lack(lack["why"], lack["hint"]) for lack in capability.get("lacks", [])},
    )


def _run_binary(
    binary: Path, arguments: Sequence[str], within_s: int = ANSWER_WITHIN_S, stdin: str | None = None
) -> str:
    command = [str(binary), *arguments]
    try:
        answer = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=within_s)
    except OSError as error:
        raise shortage(error) or _bad_engine(binary, (error.strerror or str(error)).lower()) from None
    except subprocess.TimeoutExpired:
        raise _bad_engine(binary, f"no output within {within_s} s") from None
    except UnicodeDecodeError:
        raise _bad_engine(binary, "its output cannot be parsed") from None
    if answer.returncode == Exit.TEMPORARY:
        problem, _, hint = answer.stderr.strip().partition("\n  hint: ")
        raise ThalwegError("too-few-descriptors", problem, hint=hint or None, exit_code=Exit.TEMPORARY)
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        raise _bad_engine(binary, lines[0] if lines else f"it ended with exit code {answer.returncode}")
    return answer.stdout


def _bad_engine(binary: Path, why: str) -> ThalwegError:
    return ThalwegError(
        "bad-engine",
        f"`{binary}` cannot be used: {why}",
        place=str(binary),
        expected=f"the {BINARY} of this version of thalweg",
        hint=f"unset {VARIABLE}, or correct it"
        if os.environ.get(VARIABLE)
        else "pip install --force-reinstall thalweg",
        exit_code=Exit.MISSING,
    )
