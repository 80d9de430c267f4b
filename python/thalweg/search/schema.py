"""The JSON Schema of scenario files that include tables of searches, for editors."""

from typing import Any

from thalweg.search import fuzz_table, table

TABLES: dict[str, type[table.SearchesTable]] = {table.NAME: table.SearchTable, fuzz_table.NAME: fuzz_table.FuzzTable}


def with_searches(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a scenario with the tables of searches added."""
    properties, definitions = dict(scenario["properties"]), dict(scenario["$defs"])
    for name, model in TABLES.items():
        schema = model.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= schema.pop("$defs", {})
        properties[name] = schema
    return {**scenario, "properties": properties, "$defs": definitions}
