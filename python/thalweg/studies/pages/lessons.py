"""Additional results of a study: decision trees, and a policy for servers."""

from collections.abc import Sequence

from pydantic import JsonValue

from thalweg.errors import ThalwegError
from thalweg.report.pages.study import Section
from thalweg.studies.claims.load import Study
from thalweg.studies.judging import export_policy
from thalweg.studies.running.reproduce import Reproduced


def sections(study: Study, reproduced: Sequence[Reproduced], *, quick: bool) -> list[Section]:
    """Return the sections about trees and policies; engines without results are excluded."""
    judged = [result for result in reproduced if result.judged and result.directories]
    listed = []
    if study.claims.tree is not None and judged:
        from thalweg.studies.judging import tree  # importing scikit-learn is slow

        trees = {result.engine.name: tree.learn(study.claims.tree, result.parts) for result in judged}
        listed.append(Section("Decision trees", tree.section(study.claims.tree, trees)))
    if study.claims.policy is not None and judged:
        blocks = [study.claims.policy.about.strip()]
        blocks += [
            f"**{result.engine.name}**\n\n```toml\n{policy_file(study, result, quick=quick)}```" for result in judged
        ]
        listed.append(Section("Policy", "\n\n".join(blocks)))
    return listed


def trees(study: Study, reproduced: Reproduced) -> dict[str, JsonValue] | None:
    """Return an engine's decision trees in the format of --json; None if the study has none, or was not run."""
    if study.claims.tree is None or not reproduced.parts:
        return None
    from thalweg.studies.judging import tree  # importing scikit-learn is slow

    return tree.learn(study.claims.tree, reproduced.parts).to_json()


def policy_file(study: Study, reproduced: Reproduced, *, quick: bool) -> str:
    """Return the policy that follows from an engine's results, as TOML.

    Raises:
        ThalwegError: If the study has no policy.
    """
    if study.claims.policy is None:
        raise no_policy(study)
    engine = reproduced.engine
    return export_policy.text(
        study.name, study.claims.policy, engine.name, engine.version, reproduced.judged, is_quick=quick
    )


def no_policy(study: Study) -> ThalwegError:
    """Return the error that a study has no policy."""
    return ThalwegError(
        "no-policy",
        f"no policy follows from the study `{study.name}`",
        place="--policy",
        hint="remove --policy; only studies with a table [policy] in claims.toml have a policy",
    )
