"""The recorded results of the bundled studies are complete, and from the current version of the simulator."""

import pytest
from thalweg import engine, studies
from thalweg.studies.running import recorded_results

STUDIES = studies.ready_made()


def engine_of(name: str) -> str:
    """Return the engine whose recorded results are checked: the simulator, or another engine if the simulator runs no
    part of the study.
    """
    study = studies.load(STUDIES[name])
    setups = [part.engines.get(engine.DEFAULT) for part in study.claims.parts.values()]
    if any(setup is None or setup.why_not is None for setup in setups):
        return engine.DEFAULT
    return next(iter(recorded_results.read(study)))


LIMITS_S = {"quick": 4 * 60, "full": 60 * 60}
"""Maximum recorded time of all studies on the simulator, in seconds; the quick sets are part of `make test`."""


EARLIER = {("sim", "full"): "3"}
"""Earlier result versions of which recorded results still exist. Each study's page shows the version of each set. The
full sets of cdn-pop and imc19-when-to-use-bbr are to be recorded again: `thalweg reproduce NAME --record`.
"""


@pytest.mark.parametrize("size", LIMITS_S)
@pytest.mark.parametrize("name", STUDIES)
def test_recorded_claims_match_the_current_simulator(name: str, size: str) -> None:
    study = studies.load(STUDIES[name])
    used = engine_of(name)
    recorded = recorded_results.read(study)[used][size]
    assert list(recorded["claims"]) == [claim.id for claim in study.claims.claims]
    # Kernels differ between machines, also those that are built from the same source.
    version, _, kernel = recorded["result_version"].partition(" ")
    current = engine.capabilities().engines[used].version.partition(" ")[0]
    assert version in (current, EARLIER.get((used, size))), (version, kernel)


@pytest.mark.parametrize("size", LIMITS_S)
def test_all_studies_stay_within_the_time_budget(size: str) -> None:
    recorded = {name: recorded_results.read(studies.load(STUDIES[name])) for name in STUDIES}
    took = {name: found[engine.DEFAULT][size]["seconds"] for name, found in recorded.items() if engine.DEFAULT in found}
    # The time of a set that was interrupted and resumed is unknown.
    assert sum(seconds for seconds in took.values() if seconds is not None) <= LIMITS_S[size], took


@pytest.mark.parametrize("name", STUDIES)
def test_every_server_rule_is_backed_by_claims_of_the_full_set(name: str) -> None:
    study = studies.load(STUDIES[name])
    claims = recorded_results.read(study)[engine_of(name)]["full"]["claims"]
    for rule in study.claims.policy.rules if study.claims.policy else ():
        assert {claim: claims[claim]["verdict"] for claim in rule.claims} == dict.fromkeys(rule.claims, "holds")
