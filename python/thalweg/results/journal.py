"""The journal of a run directory: events.jsonl, one JSON object per line, only ever appended to."""

import json
from pathlib import Path

from thalweg.engine_output import EngineEvent, is_event


def read(run: Path) -> list[EngineEvent]:
    """Read the events in order.

    A killed engine may leave an incomplete last line, which is skipped, like any line that is not a JSON object (the
    next line of a resumed run may follow an incomplete one).
    """
    try:
        text = (run / "events.jsonl").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    events: list[EngineEvent] = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if is_event(event):
            events.append(event)
    return events
