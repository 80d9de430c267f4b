"""The types of a plan in run.json have only keys of its schema."""

import json
from importlib.resources import files
from typing import Any, is_typeddict

import pytest
from thalweg.results import plan_document

SCHEMA: dict[str, Any] = json.loads(files("thalweg.plan").joinpath("plan.schema.json").read_text(encoding="utf-8"))

DOCUMENTS = [each for each in vars(plan_document).values() if is_typeddict(each)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda schema: schema.__name__)
def test_plan_keys_match_the_schema(document: type) -> None:
    name = document.__name__.removesuffix("Document")
    node = SCHEMA if name == "Plan" else SCHEMA["$defs"][name]
    keys = {key for schema in (node, *node.get("oneOf", ())) for key in schema.get("properties", {})}
    assert document.__annotations__.keys() <= keys
    always = set.intersection(*(set(schema["required"]) for schema in node.get("oneOf", [node])))
    nullable = {key for key, value in node.get("properties", {}).items() if {"type": "null"} in value.get("anyOf", ())}
    assert document.__required_keys__ <= always | nullable
