"""Measurements of `bench/run.py`.

| topic | file |
| --- | --- |
| cases | `cases` |
| cost of a process | `child` |
| running a case on thalweg's engine | `ours` |
| running a case on ns-3 | `peer` |
| results as text and numbers | `table` |
"""
