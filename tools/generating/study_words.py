"""The introduction of the studies' front page."""

INTRODUCTION = """\
Each study repeats the experiments of a source and judges its claims.

A **claim** is one sentence of the source, turned into a number with bounds: "loses more than half" became a ratio of
at most 0.5. The bounds and their reasons are in the study's `claims.toml`. Claims that fail stay in the list, with the
reason where it is known.

A **value** is a mean over *n* repetitions that differ by their seed (*n* at the point with the fewest). Its 95 %
confidence interval comes from their spread: Student's t; for a ratio of two means on a logarithmic scale, with Welch's
degrees of freedom. The interval covers random variation, not the difference between a model and reality.

- **holds** (✓): the whole interval is within the bounds
- **does not hold** (✗): the whole interval is outside
- **not settled** (~): the interval spans a bound, although it is narrow enough or all repetitions are used
- **cannot run here** (-): the engine lacks a feature, or would take too long
- **not in the quick set** (·): only the full set has the points

A claim over many points holds if it holds at each; the page shows the point nearest to a bound, or furthest outside.
Confidence is divided by the number of points outside (Bonferroni), so that a long list does not fail by chance.
[Formulas, and how to write a study](../reference/studies.md).

Where `sim` and `uml` ([engines](../reference/features.md)) [agree](../reference/agreement.md), an error in our model of
TCP is not the cause; the models of path and traffic, which they share, may still be. A study's page lists what an
engine runs on a smaller scale than the source.

Run every study on the simulator, and fail if a claim that held no longer holds:

```sh
thalweg reproduce all --quick --check      # without --quick: everything
```

`--engine uml` needs `thalweg kernel build` first. The table counts the full set, or the quick one where only that was
recorded.
"""
