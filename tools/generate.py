"""Writes the generated files: Python models, JSON Schemas and reference pages from the declarations in Rust, the tables
of searches in the schema and the page of exit codes from Python, and the pages of studies from their claims and
results.

    python tools/generate.py            writes the files
    python tools/generate.py --check    prints the files that are stale, and fails if there are any

The declarations in Rust come from `thalweg-engine schema`; the binary is that of THALWEG_ENGINE, otherwise the one
beside this Python, otherwise the one on the PATH.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from generating import columns, exit_codes, models, scenario_page, study_pages  # noqa: E402
from thalweg import engine, studies  # noqa: E402
from thalweg.search.schema import with_searches  # noqa: E402


def outputs() -> Iterator[tuple[Path, str]]:
    """Yield every generated file with its content."""
    scenario, plan, tables = engine.schema("scenario"), engine.schema("plan"), engine.schema("columns")
    package = ROOT / "python" / "thalweg"
    docs = ROOT / "docs"
    yield _formatted(package / "scenario" / "models.py", models.module(scenario, "scenario"))
    yield package / "scenario" / "scenario.schema.json", _json(scenario)
    yield _formatted(package / "plan" / "models.py", models.module(plan, "plan"))
    yield package / "plan" / "plan.schema.json", _json(plan)
    yield _formatted(package / "results" / "columns.py", columns.module(tables))
    yield docs / "schema" / "scenario.schema.json", _json(with_searches(scenario))
    yield docs / "reference" / "scenario.md", scenario_page.page(scenario)
    yield docs / "reference" / "columns.md", columns.page(tables)
    records = docs / "reference" / "records.md"
    yield records, columns.records_page(records.read_text(encoding="utf-8"), tables)
    yield docs / "reference" / "exit-codes.md", exit_codes.page((package / "errors.py").read_text(encoding="utf-8"))
    loaded = [studies.load(folder) for folder in studies.ready_made().values()]
    yield docs / "studies" / "README.md", study_pages.front(loaded)
    for study in loaded:
        yield docs / "studies" / f"{study.name}.md", study_pages.page(study)


def stale() -> list[Path]:
    """Return the files that are out of date."""
    return [file for file, text in outputs() if not file.exists() or file.read_text(encoding="utf-8") != text]


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _formatted(file: Path, code: str) -> tuple[Path, str]:
    """Return the file, and the code after formatting and sorting imports as `make format` does."""
    for command in (["check", "--quiet", "--fix", "--select=I"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, f"--stdin-filename={file}", "-"]
        code = subprocess.run(ruff, cwd=ROOT, input=code, capture_output=True, text=True, check=True).stdout
    return file, code


def main() -> int:
    """Write or check the files."""
    if sys.argv[1:] == ["--check"]:
        for file in (files := stale()):
            print(f"stale: {file.relative_to(ROOT)}; run: make generate", file=sys.stderr)
        return 1 if files else 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    for file, text in outputs():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {file.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
