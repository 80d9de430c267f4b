"""Direction in which each measure is better."""

from thalweg.analysis import MEASURES

MORE_IS_BETTER = {
    "goodput",
    "transfer_goodput",
    "completed",
    "completion_rate",
    "copies_jain",
    "max_min_share",
    "delivery_rate_max",
    "utilisation",
    "utilisation_while_active",
    "jain",
    "video_bitrate",
}


def test_more_is_better_only_of_rates_shares_and_completed_work() -> None:
    assert {name.removesuffix("_up") for name, measure in MEASURES.items() if measure.better == "more"} == (
        MORE_IS_BETTER
    )
