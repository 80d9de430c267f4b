"""Decision trees learned from a part's grid: rules for the better choice on a path.

Each point of the grid is an example: its features are derived keys, its label is the side of a level on which a
quantity is. Cross-validation with stratified folds measures how well the rules apply to other points.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from thalweg.report.text.numbers import amount
from thalweg.studies.claims.models import Learn, Tree
from thalweg.studies.judging.data import NotRun, PartData
from thalweg.studies.judging.judge import quantities

SEED = 1
"""Seed of the folds and of ties between equally good splits, an arbitrary constant."""

LEAF = -1
"""scikit-learn's index for the child of a leaf."""


@dataclass(frozen=True)
class Learned:
    """A learned tree and its accuracy."""

    name: str
    features: Sequence[str]
    rules: Sequence[str]
    """Lines of the tree, indented by depth."""
    accuracy: float
    """Mean accuracy over the folds."""
    folds: Sequence[float]


@dataclass(frozen=True)
class Trees:
    """Trees learned from one engine's grid."""

    points: int
    labels: Mapping[str, int]
    guess: float
    """Accuracy of always predicting the more frequent label, the baseline of a tree."""
    learned: Sequence[Learned]
    note: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the trees in the format of --json."""
        return asdict(self)


def learn(table: Tree, parts: Mapping[str, PartData]) -> Trees:
    """Learn every tree of a study from an engine's measurements."""
    try:
        estimated = quantities(table.part, table.value, table.against, table.as_, parts)
    except NotRun as reason:
        return Trees(0, {}, 0.0, [], note=str(reason))
    names = list(dict.fromkeys(name for task in table.learn for name in task.features))
    keys = estimated.points.select(names).to_numpy().astype(np.float64)
    is_finite = np.isfinite(keys).all(axis=1) & np.isfinite(estimated.estimate)
    keys, is_above = keys[is_finite], estimated.estimate[is_finite] > table.level
    labels = {table.above: int(is_above.sum()), table.below: int((~is_above).sum())}
    min_count = min(labels.values())
    if min_count < table.folds:
        why = f"only {min_count} of {len(is_above)} points have the rarer label: too few for {table.folds} folds"
        return Trees(len(is_above), labels, 0.0, [], note=why)
    columns = [[names.index(name) for name in task.features] for task in table.learn]
    learned = [
        _learned(task, table, keys[:, indices], is_above) for task, indices in zip(table.learn, columns, strict=True)
    ]
    return Trees(len(is_above), labels, max(labels.values()) / len(is_above), learned)


def _learned(task: Learn, table: Tree, keys: npt.NDArray[np.float64], is_above: npt.NDArray[np.bool_]) -> Learned:
    model = DecisionTreeClassifier(max_depth=task.depth, random_state=SEED)
    folds = StratifiedKFold(table.folds, shuffle=True, random_state=SEED)
    scores = cross_val_score(model, keys, is_above, cv=folds)
    model.fit(keys, is_above)
    rules = list(_rules(model, table, task.features, keys, is_above))
    return Learned(task.name, list(task.features), rules, float(scores.mean()), [float(score) for score in scores])


def _rules(
    model: DecisionTreeClassifier,
    table: Tree,
    features: Sequence[str],
    keys: npt.NDArray[np.float64],
    is_above: npt.NDArray[np.bool_],
) -> Iterator[str]:
    """Yield the lines of a fitted tree; a split with equal labels on both sides is merged into one leaf."""
    tree = model.tree_

    def majority(rows: npt.NDArray[np.bool_]) -> tuple[str, int]:
        above = int(is_above[rows].sum())
        below = int(rows.sum()) - above
        return (table.above, above) if above > below else (table.below, below)

    def leaf(rows: npt.NDArray[np.bool_]) -> str:
        label, count = majority(rows)
        return f"{label}   ({count} of {int(rows.sum())} points)"

    def labels(node: int, rows: npt.NDArray[np.bool_]) -> set[str]:
        if tree.children_left[node] == LEAF:
            return {majority(rows)[0]}
        is_left = keys[:, tree.feature[node]] <= tree.threshold[node]
        return labels(tree.children_left[node], rows & is_left) | labels(tree.children_right[node], rows & ~is_left)

    def lines(node: int, rows: npt.NDArray[np.bool_], indent: str) -> Iterator[str]:
        if len(labels(node, rows)) == 1:
            yield indent + leaf(rows)
            return
        name, threshold = features[tree.feature[node]], float(tree.threshold[node])
        is_left = keys[:, tree.feature[node]] <= threshold
        for sign, child, side in (("<=", tree.children_left, is_left), (">", tree.children_right, ~is_left)):
            yield f"{indent}{name} {sign} {_number(name, threshold)}"
            yield from lines(child[node], rows & side, indent + "    ")

    return lines(0, np.ones(len(keys), dtype=np.bool_), "")


def _number(name: str, value: float) -> str:
    unit = next((unit for end, unit in (("_bps", "bit/s"), ("_s", "s"), ("_bytes", "B")) if name.endswith(end)), None)
    return amount(float(f"{value:.3g}"), unit) if unit else f"{value:.3g}"


def section(table: Tree, trees_by_engine: Mapping[str, Trees]) -> str:
    """Return a Markdown section that compares the trees of each engine with the paper's."""
    blocks = [table.about]
    if table.paper:
        blocks.append(f"The paper ({table.source}):\n\n{_block(table.paper.strip().splitlines())}")
    for engine, trees in trees_by_engine.items():
        if not trees.learned:
            blocks.append(f"**{engine}**: no tree. {trees.note[:1].upper()}{trees.note[1:]}.")
            continue
        counts = ", ".join(f"{label} in {count}" for label, count in trees.labels.items())
        blocks.append(
            f"**{engine}**: {trees.points} points, {counts}. The more frequent label is correct for "
            f"{trees.guess:.1%} of them."
        )
        for tree in trees.learned:
            ends = f"{min(tree.folds):.1%} to {max(tree.folds):.1%}"
            blocks.append(
                f"{tree.name}: correct for **{tree.accuracy:.1%}** of the held-out points "
                f"({table.folds}-fold cross-validation, folds from {ends}).\n\n{_block(tree.rules)}"
            )
    return "\n\n".join(block for block in blocks if block)


def _block(lines: Sequence[str]) -> str:
    return "\n".join(["```text", *lines, "```"])
