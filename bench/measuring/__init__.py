"""How `bench/run.py` measures.

| question | file |
| --- | --- |
| what is measured? | `cases` |
| what did a process cost? | `child` |
| how is a case run on our engine? | `ours` |
| and on ns-3? | `peer` |
| what came out, in words and numbers? | `table` |
"""
