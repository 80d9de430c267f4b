"""Measurements of `bench/run.py`, and of other benchmarks of commands.

| topic | file |
| --- | --- |
| cases | `cases` |
| cost of a process | `child` |
| running a case on thalweg's engine | `ours` |
| running a case on ns-3 | `peer` |
| results as text and numbers | `table` |
| synthetic logs for `bench/importing.py` | `logs` |
| measurements and page of `bench/scaling.py` | `growth`, `growth_page` |
"""
