"""Runs a plan on thalweg's engine."""

import json
import tempfile
from pathlib import Path

import pyarrow.parquet
from thalweg import engine
from thalweg.plan.models import Plan

from measuring import child
from measuring.table import Side


def run(plan: Plan, threads: int) -> Side:
    """Run all experiments of a plan, and write the tables."""
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        file, out = Path(folder) / "plan.json", Path(folder) / "run"
        file.write_text(plan.model_dump_json())
        cost = child.run([engine.find(), "run", "--plan", file, "--out", out, "--threads", str(threads)])
        events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
        finished = [event for event in events if event["event"] == "finished"]
        if len(finished) != len(plan.experiments):
            raise SystemExit(f"bench: {len(finished)} of {len(plan.experiments)} experiments finished: {events[-1]}")
        acked = sum(
            sum(pyarrow.parquet.read_table(table, columns=["acked_bytes"])["acked_bytes"].to_pylist())
            for table in sorted((out / "flows").glob("*.parquet"))
        )
    simulated_s = sum(event["simulated_s"] for event in finished)
    return Side.of(cost, packets=sum(event["packets"] for event in finished), simulated_s=simulated_s, payload=acked)
