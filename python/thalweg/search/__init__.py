"""Parameter searches: an engine runs candidates, and the best ones are compared with the default.

    document = scenario.load("optimise.toml")
    search = Search.of(document)
    ... thalweg.search.searching evaluates candidates until the budget is used ...

docs/guide/search-for-parameters.md is a tutorial; docs/reference/searches.md defines every key and rule.
"""
