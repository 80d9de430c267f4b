"""Searches for parameters: candidates are tried by an engine, measured, and the best compared with the default.

    document = scenario.load("optimise.toml")
    search = Search.of(document)
    ... thalweg.search.searching evaluates candidates until the budget is used ...

docs/guide/search-for-parameters.md shows it, docs/reference/searches.md defines every key and rule.
"""
