"""Rules between the keys of a claims.toml, and between it and its scenarios."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from thalweg.analysis import MEASURES, Measure
from thalweg.checks import expressions
from thalweg.engine import DEFAULT
from thalweg.scenario import Document
from thalweg.scenario.document import TomlValue
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.places import show
from thalweg.scenario.positions import KeyPath, dotted
from thalweg.scenario.text import words
from thalweg.studies.claims.keys import DERIVED, DROPPED, decides_derived, is_one, sides, values_of
from thalweg.studies.claims.models import Claim, Claims, Judge, PaperFigure, Quantity, Tree
from thalweg.studies.claims.partners import ambiguous_keys
from thalweg.studies.claims.shapes import Shape, shapes
from thalweg.studies.claims.study_measures import LEAST, MOST, NAMES

DRAWN_FROM_VALUES = ("lines", "points", "bars", "heatmap", "cdf")


@dataclass(frozen=True)
class _Study:
    claims: Claims
    shapes: Mapping[str, Shape]
    """Shapes by the name of the part."""
    mistakes: Mistakes


def check(claims: Claims, documents: Mapping[str, Document], mistakes: Mistakes) -> None:
    """Record the mistakes; if parts have any, only those of the parts."""
    part_shapes = shapes(claims, documents, mistakes)
    if mistakes.entries:  # mistakes in parts make the following checks meaningless
        return
    study = _Study(claims, part_shapes, mistakes)
    _ids("claims", [claim.id for claim in claims.claims], mistakes)
    _ids("figures", [figure.id for figure in claims.figures], mistakes)
    for name, measure in claims.measures.items():
        key_path: KeyPath = ("measures", name)
        if name in MEASURES:
            mistakes.add("same-id", key_path, f"a measure `{name}` already exists", hint="choose another name")
        if why := expressions.mistake(measure.expression, NAMES):
            expected = f"arithmetic over measures of flows, with or without the prefix `{LEAST}` or `{MOST}`"
            mistakes.add("bad-expression", (*key_path, "expression"), f"`{name}`: {why}", expected=expected)
    for number, claim in enumerate(claims.claims):
        key_path = ("claims", number)
        if _part(claim.part, (*key_path, "part"), study):
            _quantities(claim, key_path, study)
            _judge(claim.judge, (*key_path, "judge"), claim, part_shapes[claim.part], mistakes)
    for number, figure in enumerate(claims.figures):
        key_path = ("figures", number)
        if _part(figure.part, (*key_path, "part"), study):
            _figure(figure, key_path, study)
    if claims.tree is not None and _part(claims.tree.part, ("tree", "part"), study):
        _only_of_runs("a tree", ("tree", "part"), part_shapes[claims.tree.part], mistakes)
        _quantities(claims.tree, ("tree",), study)
        for number, task in enumerate(claims.tree.learn):
            for name in task.features:
                if name not in DERIVED:
                    mistakes.add_unknown(("tree", "learn", number, "features"), "derived key", name, DERIVED)
    for number, rule in enumerate(claims.policy.rules if claims.policy else ()):
        for name in rule.claims:
            ids = [claim.id for claim in claims.claims]
            if name not in ids:
                mistakes.add_unknown(("policy", "rules", number, "claims"), "claim", name, ids)


def _ids(table: str, ids: Sequence[str], mistakes: Mistakes) -> None:
    for number, id_ in enumerate(ids):
        if id_ in ids[:number]:
            mistakes.add("same-id", (table, number, "id"), f"two of {table} have the id `{id_}`", hint="rename one")


def _part(name: str, key_path: KeyPath, study: _Study) -> bool:
    parts = study.claims.parts
    if name not in parts:
        study.mistakes.add_unknown(key_path, "part", name, list(parts))
    return name in parts


def _quantities(claim: Claim | PaperFigure | Tree, key_path: KeyPath, study: _Study) -> None:
    claims, part_shapes, mistakes = study.claims, study.shapes, study.mistakes
    assert claim.value
    _quantity(claim.value, (*key_path, "value"), part_shapes[claim.part], claims, mistakes)
    kind = claim.judge.kind if isinstance(claim, Claim) else claim.as_
    if kind != "value" and claim.against is None:
        hint = "add `against = { where = { ... } }`"
        mistakes.add("missing-key", key_path, f"`{dotted(key_path)}` is a {kind}, but has no `against`", hint=hint)
    if kind == "harm" and (claim.value.measure in claims.measures or part_shapes[claim.part].is_of_records):
        problem = (
            f"`{dotted(key_path)}` is a harm, but it is unknown whether a larger `{claim.value.measure}` is better"
        )
        mistakes.add(
            "bad-value", key_path, problem, expected="one of: value, ratio, difference, gain", hint='as = "ratio"'
        )
    if claim.against is None:
        return
    if kind == "value":
        hint = 'choose a comparison with `as`, such as `as = "ratio"`, or remove `against`'
        mistakes.add(
            "unused-key", (*key_path, "against"), f"`{dotted(key_path)}.against` is not used by a value", hint=hint
        )
    part = claim.against.part
    if part is not None and not _part(part, (*key_path, "against", "part"), study):
        return
    conditions = {key: value for key, value in claim.against.where.items() if value != DROPPED}
    shape = part_shapes[part or claim.part]
    _where(conditions, (*key_path, "against", "where"), shape, mistakes)
    value, other = sides(claim.value, claim.against, list(shape.sweep))
    if other != value:
        _measure(other, (*key_path, "against"), shape, claims, mistakes)
    _partners(claim, (value, other), key_path, study)


def _partners(
    claim: Claim | PaperFigure | Tree, compared: tuple[Quantity, Quantity], key_path: KeyPath, study: _Study
) -> None:
    part = (claim.against and claim.against.part) or claim.part
    setup = study.claims.parts[part].engines.get(DEFAULT)
    narrowed = setup.set if setup else {}  # keys that the simulator does not sweep need not be unambiguous
    shape, other = study.shapes[claim.part], study.shapes[part]
    keys = ambiguous_keys(*compared, shape, other, is_same_part=part == claim.part)
    for key in keys:
        if key not in narrowed:
            study.mistakes.add(
                "several-partners",
                (*key_path, "against"),
                f"`{dotted(key_path)}.against` does not specify the {key} with which a point is compared",
                expected=f"one value of {key}: {', '.join(str(choice) for choice in other.sweep[key] or ())}",
                hint=f'add "{key}" = ... to `against.where`, or leave it open in `value.where`, too',
            )


def _quantity(quantity: Quantity, key_path: KeyPath, shape: Shape, claims: Claims, mistakes: Mistakes) -> None:
    _measure(quantity, key_path, shape, claims, mistakes)
    _where(quantity.where, (*key_path, "where"), shape, mistakes)


def _measure(quantity: Quantity, key_path: KeyPath, shape: Shape, claims: Claims, mistakes: Mistakes) -> None:
    if shape.is_of_records:
        _of_records(quantity, key_path, shape, mistakes)
        return
    measure, study_measure = MEASURES.get(quantity.measure), claims.measures.get(quantity.measure)
    if study_measure is not None:
        measure = Measure(quantity.measure, quantity.measure, "count", "flow", study_measure.about)
        for key in study_measure.among:
            if key not in shape.sweep:
                place_of_key: KeyPath = ("measures", quantity.measure, "among")
                mistakes.add_unknown(place_of_key, "key of the sweep", key, list(shape.sweep))
    if measure is None:
        mistakes.add_unknown((*key_path, "measure"), "measure", quantity.measure, [*MEASURES, *claims.measures])
        return
    if measure.of == "path" and quantity.flow is not None:
        problem = f"`{dotted(key_path)}.flow` is `{quantity.flow}`, but `{measure.name}` is a measure of the path"
        mistakes.add("unused-key", (*key_path, "flow"), problem, hint="remove `flow`")
    elif measure.of == "flow" and quantity.flow is None:
        problem = f"`{dotted(key_path)}` has no `flow`, and `{measure.name}` is a measure of a flow"
        mistakes.add("missing-key", key_path, problem, expected=f"flow = {words.one_of(shape.flows)}")
    elif quantity.flow is not None and quantity.flow not in shape.flows:
        mistakes.add_unknown((*key_path, "flow"), "flow", quantity.flow, shape.flows)


def _of_records(quantity: Quantity, key_path: KeyPath, shape: Shape, mistakes: Mistakes) -> None:
    """Check a measure of records, which have no flows and no time windows."""
    if quantity.measure not in shape.measures:
        mistakes.add_unknown((*key_path, "measure"), "measure of records", quantity.measure, shape.measures)
    for key in ("flow", "window"):
        if getattr(quantity, key) is not None:
            problem = f"`{dotted(key_path)}.{key}` has no effect on a part of records"
            mistakes.add("unused-key", (*key_path, key), problem, hint=f"remove `{key}`")


def _only_of_runs(subject: str, key_path: KeyPath, shape: Shape, mistakes: Mistakes) -> None:
    if shape.is_of_records:
        mistakes.add("bad-part", key_path, f"{subject} needs a part with a scenario, but this one has records")


def _where(conditions: Mapping[str, TomlValue], key_path: KeyPath, shape: Shape, mistakes: Mistakes) -> None:
    for key, condition in conditions.items():
        if not _key(key, (*key_path, key), shape, mistakes):
            continue
        swept = shape.sweep.get(key)
        if isinstance(condition, dict):
            limits = {"at_least", "at_most"}
            if not condition.keys() <= limits or not all(
                isinstance(limit, int | float) for limit in condition.values()
            ):
                expected = "{ at_least = NUMBER }, { at_most = NUMBER }, or both"
                mistakes.add("bad-value", (*key_path, key), f"`{key}` is not a range", expected=expected)
            continue
        for value in values_of(condition):
            if not isinstance(value, bool | int | float | str):
                mistakes.add(
                    "wrong-type", (*key_path, key), f"`{key}` is {show(value)}", expected="a value of its sweep"
                )
            elif swept is not None and value not in swept:
                choices = [str(limit) for limit in swept]
                mistakes.add_unknown((*key_path, key), "value of the sweep", str(value), choices)


def _key(key: str, key_path: KeyPath, shape: Shape, mistakes: Mistakes) -> bool:
    if key not in shape.keys:
        mistakes.add_unknown(key_path, "key", key, shape.keys)
    return key in shape.keys


def _judge(judge: Judge, key_path: KeyPath, claim: Claim, shape: Shape, mistakes: Mistakes) -> None:
    if judge.along is not None:
        _key(judge.along, (*key_path, "along"), shape, mistakes)
        if judge.take is None:
            hint = 'add `take = "growth"`, or spread, slope, spearman, crossing'
            mistakes.add("missing-key", key_path, f"`{dotted(key_path)}` has `along`, but no `take`", hint=hint)
    elif judge.take is not None:
        hint = 'add `along = "a key of the sweep"`'
        mistakes.add("missing-key", key_path, f"`{dotted(key_path)}` has `take`, but no `along`", hint=hint)
    if (judge.take == "crossing") != (judge.level is not None):
        mistakes.add(
            "missing-key" if judge.level is None else "unused-key",
            key_path,
            f'`{dotted(key_path)}`: `level` and `take = "crossing"` require each other',
            hint="add `level = NUMBER`" if judge.level is None else "remove `level`",
        )
    if judge.at_least is None and judge.at_most is None:
        problem = f"`{dotted(key_path)}` has no testable condition"
        mistakes.add("missing-key", key_path, problem, expected="at_least, at_most, or both")
    elif judge.at_least is not None and judge.at_most is not None and judge.at_least > judge.at_most:
        problem = f"`{dotted(key_path)}`: `at_least` is above `at_most`"
        mistakes.add("out-of-range", key_path, problem, found=f"{judge.at_least:g} > {judge.at_most:g}")
    _sample(judge, key_path, mistakes)
    if (judge.over == "share") != (judge.at_least_share is not None):
        mistakes.add(
            "missing-key" if judge.at_least_share is None else "unused-key",
            key_path,
            f'`{dotted(key_path)}`: `at_least_share` and `over = "share"` require each other',
            hint="add `at_least_share = 0.9`" if judge.at_least_share is None else "remove `at_least_share`",
        )


def _sample(judge: Judge, key_path: KeyPath, mistakes: Mistakes) -> None:
    """Check the settings for points that are a sample of a population."""
    if judge.sample and (judge.along is not None or judge.over in ("every", "min", "max")):
        problem = f"`{dotted(key_path)}`: `sample` requires `over` to be median, mean, share or total, and no `along`"
        mistakes.add("bad-value", key_path, problem, hint="remove `sample`, or change `over`")
    if judge.over == "total" and (not judge.sample or judge.kind not in ("ratio", "gain")):
        problem = f'`{dotted(key_path)}`: `over = "total"` requires `sample = true`, and `as = "ratio"` or `"gain"`'
        mistakes.add("bad-value", key_path, problem, hint='write over = "mean"')


def _figure(figure: PaperFigure, key_path: KeyPath, study: _Study) -> None:
    shape, mistakes = study.shapes[figure.part], study.mistakes
    _where(figure.where, (*key_path, "where"), shape, mistakes)
    for name, keys in (("series", figure.series), ("panels", figure.panels)):
        for number, key in enumerate(keys):
            _key(key, (*key_path, name, number), shape, mistakes)
    for number, curve in enumerate(figure.curves):
        if why := expressions.mistake(curve.y, DERIVED):
            expected = f"an arithmetic expression over {', '.join(DERIVED)}"
            mistakes.add("bad-expression", (*key_path, "curves", number, "y"), f"`{curve.y}`: {why}", expected=expected)
    if figure.curves or figure.kind == "series":
        _only_of_runs(f"the figure `{figure.id}`", (*key_path, "part"), shape, mistakes)
    for number, flow in enumerate(figure.flows):
        if flow not in shape.flows:
            mistakes.add_unknown((*key_path, "flows", number), "flow", flow, shape.flows)
    needs = _needed(figure)
    for key in needs:
        if getattr(figure, key) is None:
            problem = f"`{key}` is missing in {dotted(key_path)}: a figure of kind `{figure.kind}` needs it"
            mistakes.add("missing-key", key_path, problem)
    for key in ("x", "y"):
        if name := getattr(figure, key):
            _key(name, (*key_path, key), shape, mistakes)
    if figure.value is not None:
        _quantities(figure, key_path, study)
        _open_keys(figure, key_path, shape, mistakes)


def _open_keys(figure: PaperFigure, key_path: KeyPath, shape: Shape, mistakes: Mistakes) -> None:
    """Reject figures whose points overlap: varying keys must distinguish lines, panels or positions."""
    assert figure.value
    if figure.kind not in ("lines", "bars", "heatmap"):
        return
    conditions = {**figure.where, **figure.value.where}
    distinguished = {*figure.series, *figure.panels, figure.x, figure.y}
    if figure.against is not None and figure.against.part is None:
        distinguished |= {
            key for key, condition in figure.against.where.items() if is_one(condition) and condition != DROPPED
        }
    for key, values in shape.sweep.items():
        is_fixed = key in conditions and not isinstance(conditions[key], dict) and len(values_of(conditions[key])) == 1
        is_derived = decides_derived(key) and any(condition in DERIVED for condition in (*distinguished, *conditions))
        if (values is None or len(values) > 1) and key not in distinguished and not is_fixed and not is_derived:
            hint = f'put "{key}" into `series` or `panels`, or give it a value in `where`'
            mistakes.add(
                "open-key", key_path, f"the figure `{figure.id}` does not distinguish the values of `{key}`", hint=hint
            )


def _needed(figure: PaperFigure) -> Iterable[str]:
    match figure.kind:
        case "series":
            return ("quantity",)
        case "heatmap":
            return ("value", "x", "y")
        case "cdf":
            return ("value",)
        case _:
            return ("value", "x")
