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
from thalweg.scenario.positions import Place, dotted
from thalweg.scenario.text import words
from thalweg.studies.claims.keys import DERIVED, DROPPED, decides_derived, is_one, sides, values_of
from thalweg.studies.claims.models import Claim, Claims, Judge, PaperFigure, Quantity, Tree
from thalweg.studies.claims.partners import ambiguous_keys
from thalweg.studies.claims.shapes import Shape, shapes
from thalweg.studies.claims.study_measures import LEAST, MOST, NAMES

DRAWN_FROM_VALUES = ("lines", "points", "bars", "heatmap", "cdf")


@dataclass(frozen=True)
class _Study:
    """What a check reads, and where it notes mistakes."""

    claims: Claims
    shapes: Mapping[str, Shape]
    """By the names of parts."""
    mistakes: Mistakes


def check(claims: Claims, documents: Mapping[str, Document], mistakes: Mistakes) -> None:
    """Note every mistake."""
    known = shapes(claims, documents, mistakes)
    if mistakes.found:  # of parts: what is said of them could not be understood
        return
    study = _Study(claims, known, mistakes)
    _ids("claims", [claim.id for claim in claims.claims], mistakes)
    _ids("figures", [figure.id for figure in claims.figures], mistakes)
    for name, measure in claims.measures.items():
        place: Place = ("measures", name)
        if name in MEASURES:
            mistakes.add("same-id", place, f"there is a measure `{name}` already", hint="give it another name")
        if why := expressions.mistake(measure.expression, NAMES):
            expected = f"arithmetic over measures of flows, and `{LEAST}` and `{MOST}` before their names"
            mistakes.add("bad-expression", (*place, "expression"), f"`{name}`: {why}", expected=expected)
    for number, claim in enumerate(claims.claims):
        place = ("claims", number)
        if _part(claim.part, (*place, "part"), study):
            _quantities(claim, place, study)
            _judge(claim.judge, (*place, "judge"), claim, known[claim.part], mistakes)
    for number, figure in enumerate(claims.figures):
        place = ("figures", number)
        if _part(figure.part, (*place, "part"), study):
            _figure(figure, place, study)
    if claims.tree is not None and _part(claims.tree.part, ("tree", "part"), study):
        _only_of_runs("a tree", ("tree", "part"), known[claims.tree.part], mistakes)
        _quantities(claims.tree, ("tree",), study)
        for number, each in enumerate(claims.tree.learn):
            for name in each.features:
                if name not in DERIVED:
                    mistakes.add_unknown(("tree", "learn", number, "features"), "derived key", name, DERIVED)
    for number, rule in enumerate(claims.policy.rules if claims.policy else ()):
        for name in rule.claims:
            ids = [claim.id for claim in claims.claims]
            if name not in ids:
                mistakes.add_unknown(("policy", "rules", number, "claims"), "claim", name, ids)


def _ids(table: str, ids: Sequence[str], mistakes: Mistakes) -> None:
    for number, each in enumerate(ids):
        if each in ids[:number]:
            mistakes.add("same-id", (table, number, "id"), f"two of {table} have the id `{each}`", hint="rename one")


def _part(name: str, place: Place, study: _Study) -> bool:
    parts = study.claims.parts
    if name not in parts:
        study.mistakes.add_unknown(place, "part", name, list(parts))
    return name in parts


def _quantities(claim: Claim | PaperFigure | Tree, place: Place, study: _Study) -> None:
    claims, known, mistakes = study.claims, study.shapes, study.mistakes
    assert claim.value
    _quantity(claim.value, (*place, "value"), known[claim.part], claims, mistakes)
    kind = claim.judge.kind if isinstance(claim, Claim) else claim.as_
    if kind != "value" and claim.against is None:
        hint = "add `against = { where = { ... } }`"
        mistakes.add("missing-key", place, f"`{dotted(place)}` is a {kind}, and has no `against`", hint=hint)
    if kind == "harm" and (claim.value.measure in claims.measures or known[claim.part].is_of_records):
        what = f"`{dotted(place)}` is a harm, and it is unknown whether more `{claim.value.measure}` is better"
        mistakes.add("bad-value", place, what, expected="one of: value, ratio, difference, gain", hint='as = "ratio"')
    if claim.against is None:
        return
    if kind == "value":
        hint = 'say which with `as`, such as `as = "ratio"`, or remove `against`'
        mistakes.add("unused-key", (*place, "against"), f"`{dotted(place)}.against` is not used by a value", hint=hint)
    part = claim.against.part
    if part is not None and not _part(part, (*place, "against", "part"), study):
        return
    own = {key: value for key, value in claim.against.where.items() if value != DROPPED}
    shape = known[part or claim.part]
    _where(own, (*place, "against", "where"), shape, mistakes)
    value, against = sides(claim.value, claim.against, list(shape.sweep))
    if against != value:
        _measure(against, (*place, "against"), shape, claims, mistakes)
    _partners(claim, (value, against), place, study)


def _partners(
    claim: Claim | PaperFigure | Tree, compared: tuple[Quantity, Quantity], place: Place, study: _Study
) -> None:
    """Refuse what leaves it open which point another one is held against."""
    part = (claim.against and claim.against.part) or claim.part
    setup = study.claims.parts[part].engines.get(DEFAULT)
    narrowed = setup.set if setup else {}  # what the simulator does not sweep, no study has to tell apart
    own, other = study.shapes[claim.part], study.shapes[part]
    keys = ambiguous_keys(*compared, own, other, is_same_part=part == claim.part)
    for key in keys:
        if key not in narrowed:
            study.mistakes.add(
                "several-partners",
                (*place, "against"),
                f"`{dotted(place)}.against` leaves open which {key} a point is held against",
                expected=f"one value of {key}: {', '.join(str(each) for each in other.sweep[key] or ())}",
                hint=f'add "{key}" = ... to `against.where`, or leave it open in `value.where`, too',
            )


def _quantity(quantity: Quantity, place: Place, shape: Shape, claims: Claims, mistakes: Mistakes) -> None:
    _measure(quantity, place, shape, claims, mistakes)
    _where(quantity.where, (*place, "where"), shape, mistakes)


def _measure(quantity: Quantity, place: Place, shape: Shape, claims: Claims, mistakes: Mistakes) -> None:
    if shape.is_of_records:
        _of_records(quantity, place, shape, mistakes)
        return
    measure, own = MEASURES.get(quantity.measure), claims.measures.get(quantity.measure)
    if own is not None:
        measure = Measure(quantity.measure, quantity.measure, "count", "flow", own.about)
        for key in own.among:
            if key not in shape.sweep:
                place_of_key: Place = ("measures", quantity.measure, "among")
                mistakes.add_unknown(place_of_key, "key of the sweep", key, list(shape.sweep))
    if measure is None:
        mistakes.add_unknown((*place, "measure"), "measure", quantity.measure, [*MEASURES, *claims.measures])
        return
    if measure.of == "path" and quantity.flow is not None:
        what = f"`{dotted(place)}.flow` is `{quantity.flow}`, but `{measure.name}` is a measure of the path"
        mistakes.add("unused-key", (*place, "flow"), what, hint="remove `flow`")
    elif measure.of == "flow" and quantity.flow is None:
        what = f"`{dotted(place)}` has no `flow`, and `{measure.name}` is a measure of a flow"
        mistakes.add("missing-key", place, what, expected=f"flow = {words.one_of(shape.flows)}")
    elif quantity.flow is not None and quantity.flow not in shape.flows:
        mistakes.add_unknown((*place, "flow"), "flow", quantity.flow, shape.flows)


def _of_records(quantity: Quantity, place: Place, shape: Shape, mistakes: Mistakes) -> None:
    """Check a measure of records, which have neither flows nor a time that could be cut."""
    if quantity.measure not in shape.measures:
        mistakes.add_unknown((*place, "measure"), "measure of records", quantity.measure, shape.measures)
    for key in ("flow", "window"):
        if getattr(quantity, key) is not None:
            what = f"`{dotted(place)}.{key}` is of no use: the part is one of records"
            mistakes.add("unused-key", (*place, key), what, hint=f"remove `{key}`")


def _only_of_runs(what: str, place: Place, shape: Shape, mistakes: Mistakes) -> None:
    if shape.is_of_records:
        mistakes.add("bad-part", place, f"{what} needs a part with a scenario, and this one is of records")


def _where(where: Mapping[str, TomlValue], place: Place, shape: Shape, mistakes: Mistakes) -> None:
    for key, wanted in where.items():
        if not _key(key, (*place, key), shape, mistakes):
            continue
        swept = shape.sweep.get(key)
        if isinstance(wanted, dict):
            limits = {"at_least", "at_most"}
            if not wanted.keys() <= limits or not all(isinstance(each, int | float) for each in wanted.values()):
                expected = "{ at_least = NUMBER }, { at_most = NUMBER }, or both"
                mistakes.add("bad-value", (*place, key), f"`{key}` is not a range", expected=expected)
            continue
        for value in values_of(wanted):
            if not isinstance(value, bool | int | float | str):
                mistakes.add("wrong-type", (*place, key), f"`{key}` is {show(value)}", expected="a value of its sweep")
            elif swept is not None and value not in swept:
                choices = [str(each) for each in swept]
                mistakes.add_unknown((*place, key), "value of the sweep", str(value), choices)


def _key(key: str, place: Place, shape: Shape, mistakes: Mistakes) -> bool:
    if key not in shape.keys:
        mistakes.add_unknown(place, "key", key, shape.keys)
    return key in shape.keys


def _judge(judge: Judge, place: Place, claim: Claim, shape: Shape, mistakes: Mistakes) -> None:
    if judge.along is not None:
        _key(judge.along, (*place, "along"), shape, mistakes)
        if judge.take is None:
            hint = 'add `take = "growth"`, or spread, slope, spearman, crossing'
            mistakes.add("missing-key", place, f"`{dotted(place)}` has `along`, and no `take`", hint=hint)
    elif judge.take is not None:
        hint = 'add `along = "a key of the sweep"`'
        mistakes.add("missing-key", place, f"`{dotted(place)}` has `take`, and no `along`", hint=hint)
    if (judge.take == "crossing") != (judge.level is not None):
        mistakes.add(
            "missing-key" if judge.level is None else "unused-key",
            place,
            f'`{dotted(place)}`: `level` goes with `take = "crossing"`',
            hint="add `level = NUMBER`" if judge.level is None else "remove `level`",
        )
    if judge.at_least is None and judge.at_most is None:
        what = f"`{dotted(place)}` says nothing that could be wrong"
        mistakes.add("missing-key", place, what, expected="at_least, at_most, or both")
    elif judge.at_least is not None and judge.at_most is not None and judge.at_least > judge.at_most:
        what = f"`{dotted(place)}`: `at_least` is above `at_most`"
        mistakes.add("out-of-range", place, what, found=f"{judge.at_least:g} > {judge.at_most:g}")
    _sample(judge, place, mistakes)
    if (judge.over == "share") != (judge.at_least_share is not None):
        mistakes.add(
            "missing-key" if judge.at_least_share is None else "unused-key",
            place,
            f'`{dotted(place)}`: `at_least_share` goes with `over = "share"`',
            hint="add `at_least_share = 0.9`" if judge.at_least_share is None else "remove `at_least_share`",
        )


def _sample(judge: Judge, place: Place, mistakes: Mistakes) -> None:
    """Check what goes together with points that are a sample."""
    if judge.sample and (judge.along is not None or judge.over in ("every", "min", "max")):
        what = f"`{dotted(place)}`: `sample` goes with `over` as median, mean, share or total, and without `along`"
        mistakes.add("bad-value", place, what, hint="remove `sample`, or change `over`")
    if judge.over == "total" and (not judge.sample or judge.kind not in ("ratio", "gain")):
        what = f'`{dotted(place)}`: `over = "total"` goes with `sample = true` and with `as = "ratio"` or `"gain"`'
        mistakes.add("bad-value", place, what, hint='write over = "mean"')


def _figure(figure: PaperFigure, place: Place, study: _Study) -> None:
    shape, mistakes = study.shapes[figure.part], study.mistakes
    _where(figure.where, (*place, "where"), shape, mistakes)
    for name, keys in (("series", figure.series), ("panels", figure.panels)):
        for number, key in enumerate(keys):
            _key(key, (*place, name, number), shape, mistakes)
    for number, curve in enumerate(figure.curves):
        if why := expressions.mistake(curve.y, DERIVED):
            expected = f"an arithmetic expression over {', '.join(DERIVED)}"
            mistakes.add("bad-expression", (*place, "curves", number, "y"), f"`{curve.y}`: {why}", expected=expected)
    if figure.curves or figure.kind == "series":
        _only_of_runs(f"the figure `{figure.id}`", (*place, "part"), shape, mistakes)
    for number, flow in enumerate(figure.flows):
        if flow not in shape.flows:
            mistakes.add_unknown((*place, "flows", number), "flow", flow, shape.flows)
    needs = _needed(figure)
    for key in needs:
        if getattr(figure, key) is None:
            what = f"`{key}` is missing in {dotted(place)}: a figure of kind `{figure.kind}` needs it"
            mistakes.add("missing-key", place, what)
    for key in ("x", "y"):
        if name := getattr(figure, key):
            _key(name, (*place, key), shape, mistakes)
    if figure.value is not None:
        _quantities(figure, place, study)
        _open_keys(figure, place, shape, mistakes)


def _open_keys(figure: PaperFigure, place: Place, shape: Shape, mistakes: Mistakes) -> None:
    """Refuse points on top of one another: every key that varies tells lines, panels or places apart."""
    assert figure.value
    if figure.kind not in ("lines", "bars", "heatmap"):
        return
    where = {**figure.where, **figure.value.where}
    distinguished = {*figure.series, *figure.panels, figure.x, figure.y}
    if figure.against is not None and figure.against.part is None:
        distinguished |= {key for key, each in figure.against.where.items() if is_one(each) and each != DROPPED}
    for key, values in shape.sweep.items():
        is_fixed = key in where and not isinstance(where[key], dict) and len(values_of(where[key])) == 1
        is_derived = decides_derived(key) and any(each in DERIVED for each in (*distinguished, *where))
        if (values is None or len(values) > 1) and key not in distinguished and not is_fixed and not is_derived:
            hint = f'put "{key}" into `series` or `panels`, or give it a value in `where`'
            mistakes.add("open-key", place, f"the figure `{figure.id}` does not say what becomes of `{key}`", hint=hint)


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
