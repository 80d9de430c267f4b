"""The introduction of the front page of the studies."""

INTRODUCTION = """\
Each study repeats the experiments of a paper, and judges what the paper claims. This page explains how, and counts the
verdicts; the page of a study has its story and every claim.

**What a claim is.** A *claim* is one sentence of a source, turned into a number with bounds: "loses more than half"
became a ratio that must be at most 0.5. The bounds come from the source and stand beside the claim with their reason,
in the study's `claims.toml`. A claim that fails stays in the list. Where we know why it fails, its page gives the
reason, and how it was found. Where a source is known not to replicate, the claim says so.

**What an interval is.** Each number is a mean over repetitions that differ by their seed, and comes with the interval
in which the true mean lies with 95 % confidence, from the spread of the repetitions (Student's t; for a ratio of two
means on a logarithmic scale, with Welch's degrees of freedom). *n* is the number of repetitions behind it, at the
point that has fewest. The interval says how far chance moved the number, and nothing about how far a model is from the
world. That is why there is more than one engine.

**What the verdicts mean.**

| | |
| --- | --- |
| ✓ **holds** | the whole interval is within the bounds |
| ✗ **does not hold** | the whole interval is outside |
| ~ **not settled** | the interval spans a bound, and is narrow enough, or all repetitions are used up |
| - **cannot run here** | the engine cannot do it, or it would take too long: the page says which |
| · **not in the quick set** | only the quick set was run, and the points are in the full one |

A claim over many points, such as all sizes of buffer, holds if it holds at each of them; the number shown is that of
the point that is nearest to a bound, or furthest outside. Claims of many points are many chances to fail: those
outside are counted with a confidence that is divided by their number (Bonferroni), so that a long list does not fail
by chance.

Formulas, and how a study is written, stand in [studies](../reference/studies.md).

**What the engines are.** `sim` is our simulator: a model of TCP and of the path, deterministic, and quick enough for
thousands of points. `uml` is real Linux TCP, in a user-mode kernel whose clock is virtual: not our code, not
disturbed by the machine, over the kernel's own queues. `kernel` is the TCP of the machine that ran it, in real time
and with all its noise. `vm` is like it, but the sender is a virtual machine, whose processor can be taken away; only
the study of that asks for it. Where `sim` and `uml` say the same, a mistake in our model of TCP is not the reason.
What they share, the shape of the path and the traffic, may still be. [How far apart they are in
general](../reference/agreement.md) was measured on a grid. Where an engine runs fewer points or a slower link than
the paper had, the study's page says so under *scaled*.

**To repeat it.** One command runs every study on the simulator, prints its claims, and fails if a claim that held
no longer does:

```sh
thalweg reproduce all --quick --check      # a first look
thalweg reproduce all --check              # everything
```

Add `--engine uml` for real Linux TCP, once `thalweg kernel build` has made its kernel. The simulator gives the same
numbers on every machine. Every change of the project runs the quick set before it lands.

The table counts the full set, or the quick one where only that was recorded.
"""
