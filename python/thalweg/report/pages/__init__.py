"""Pages of runs, records, advice, searches and studies."""
