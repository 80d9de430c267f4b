"""The journal of a run directory: events.jsonl, an append-only file with one JSON object per line."""

import json
from pathlib import Path

from thalweg.engine_output import EngineEvent, is_event


def read(run: Path) -> list[EngineEvent]:
    """Read the events in order; none without a journal.

    A killed engine may leave an incomplete line, to which a resumed run appends its first event. Lines that are not
    events are skipped.
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
