"""Generated files match their sources."""

import generate


def test_generated_files_are_fresh() -> None:
    stale = [str(file.relative_to(generate.ROOT)) for file in generate.stale()]
    assert not stale, "to write them again: make generate"
