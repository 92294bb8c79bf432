"""Shared variables as relations: the rows of a state, the state of rows, and the join in SQL.

rows      one row, what its columns mean, and plain values as JSON
ranked    types whose entries replace each other: counters, registers, growing sets, maps by device
causal    types that can forget: what is live, and what was removed
forms     the one table of all types
relation  merging and reading rows, as SQL text that Spark and DataFusion both take

Nothing here needs Arrow, Delta or Spark.
"""
