"""Assigns records to the treatment, the control or neither."""

import ibis
from ibis.expr.types import BooleanValue, IntegerValue, StringValue, Table

from thalweg.advise.counting.built_in import number_of
from thalweg.advise.counting.segments import whole
from thalweg.advise.question import HOUR_US, SECOND_US, Question
from thalweg.records.schema import LATEST_US

CONTROL = 0
TREATMENT = 1
GROUPS = 64
"""Number of groups of clusters: a standard error from 64 groups has a relative error of 9 % (1 / sqrt(2 * 63))."""

CHANGED = "changed_algorithm"
CONTRADICTING = "contradicts_design"
SPANNING = "spans_change"
"""Reasons for which a row of the treatment or of the control belongs to no arm."""

UNTOUCHED = "untouched"
"""Value of `assignment` for connections that `thalweg-agent tune` excludes from the comparison."""

HOURS_APART = 37
"""Offset in groups between consecutive hours of a network: odd, so that 64 hours cover all groups."""

DAY_HOURS = 24

FOLDS = 8
"""Number of folds. The retransmission class of a sample's network is computed from the other folds."""
MIN_SLOTS = 2 * FOLDS
"""Minimum number of time slots, unless a slot would be shorter than a second."""

TURNS = 2**32
"""Upper bound of a switchback period's number; one-second periods reach it in the year 2106."""
UNIT_DIGITS = 7
"""Hexadecimal digits of the hash of a switchback unit; a collision among a thousand units is unlikely."""


def began(rows: Table) -> IntegerValue:
    """Return when a connection or transfer began; if unknown, when it ended."""
    return ibis.coalesce(rows.start_us, rows.end_us)


def is_untouched(rows: Table) -> BooleanValue:
    """Return which rows are of connections that `thalweg-agent tune` excludes from the comparison."""
    return (rows.assignment == UNTOUCHED).fill_null(False)


def is_receiver_limited(rows: Table) -> BooleanValue:
    """Return whether the receiver's window limited the sender for at least half of the busy time; null: unknown."""
    busy_us = rows.busy_us.nullif(0).cast("float64")
    return rows.rwnd_limited_us.cast("float64") * 2 >= busy_us


def belongs(rows: Table, question: Question) -> BooleanValue:
    """Return whether each row belongs to an arm; untouched rows do not."""
    is_kept = (rows.end_us <= LATEST_US) & (began(rows) <= LATEST_US) & ~is_untouched(rows)
    is_kept &= rows.cc.isin([question.treatment, question.control])
    for has_no_arm in without_arm(rows, question).values():
        is_kept &= ~has_no_arm
    return is_kept


def without_arm(rows: Table, question: Question) -> dict[str, BooleanValue]:
    """Return which rows of both algorithms belong to no arm, by reason; a row has at most one reason."""
    design = question.design
    has_changed = (rows.cc_at_open.notnull() & (rows.cc_at_open != rows.cc)).fill_null(False)
    if design.name == "before-after":
        is_treatment, is_late = rows.cc == question.treatment, began(rows) >= design.at_us
        is_spanning = ~is_treatment & ~is_late & (rows.end_us >= design.at_us)
        return {
            CHANGED: has_changed,
            CONTRADICTING: ~has_changed & (is_treatment != is_late),
            SPANNING: ~has_changed & is_spanning,
        }
    if design.name == "switchback":
        is_spanning = whole(began(rows), design.period_us) != whole(rows.end_us, design.period_us)
        return {CHANGED: has_changed, SPANNING: ~has_changed & is_spanning}
    return {CHANGED: has_changed}


def arm(rows: Table, question: Question) -> IntegerValue:
    """Return the number of each row's arm."""
    return (rows.cc == question.treatment).cast("int8")


def unit(text: StringValue) -> IntegerValue:
    """Return a hash of the name of a switchback unit, such as a PoP."""
    return number_of(text, UNIT_DIGITS)


def stratum(time_us: IntegerValue, question: Question, unit: IntegerValue | int = 0) -> IntegerValue:
    """Return the number of a row's time stratum: the hour; for before-after, the hour of the day; for a switchback, the
    period of a unit.
    """
    if question.design.name == "ab":
        return whole(time_us, HOUR_US).cast("int32")
    if question.design.name == "before-after":
        return (whole(time_us, HOUR_US) % DAY_HOURS).cast("int32")
    return whole(time_us, question.design.period_us) + unit * TURNS


def pair(time_us: IntegerValue, question: Question, unit: IntegerValue | int = 0) -> IntegerValue:
    """Return the number of a pair of switchback periods; pairs of two units may share it."""
    return whole(time_us, 2 * question.design.period_us) + unit


def fold(time_us: IntegerValue, question: Question, length_us: int) -> IntegerValue:
    """Return the fold of a row; `length_us` is the time that all records span.

    The folds of a switchback are made of pairs of periods, those of other designs of hours, or of shorter slots if the
    records span fewer than `MIN_SLOTS` hours.
    """
    if question.design.name == "switchback":
        return (pair(time_us, question) % FOLDS).cast("int8")
    slot_us = max(min(HOUR_US, length_us // MIN_SLOTS), SECOND_US)
    return (whole(time_us, slot_us) % FOLDS).cast("int8")


def group(time_us: IntegerValue, code: IntegerValue, question: Question, unit: IntegerValue | int = 0) -> IntegerValue:
    """Return the number of the group that a row's cluster belongs to.

    `code` is a uniformly distributed hash of the network.
    """
    number = {
        "prefix-hour": lambda: of_network_hour(time_us, code),
        "prefix": lambda: code,
        "hour": lambda: whole(time_us, HOUR_US),
        "pair": lambda: pair(time_us, question, unit),
    }[question.clusters]()
    return number % GROUPS


def of_network_hour(time_us: IntegerValue, code: IntegerValue) -> IntegerValue:
    """Return the group of a network's hour."""
    return (code + whole(time_us, HOUR_US) * HOURS_APART) % GROUPS
