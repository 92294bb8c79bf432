"""The lake: its tables, and its results read without Spark.

tables       which tables there are and what their columns mean
definitions  what results mean, kept in the lake
sqltext      names and values in SQL text, for the job too
query        SQL over one table
reading      the rows of windows and fleet-wide values
"""
