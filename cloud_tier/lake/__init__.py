"""The lake: its tables, and its results read without Spark.

tables       the tables, and the meaning of their columns
definitions  the meaning of results, kept in the lake
sqltext      names and values in SQL text, for the job too
query        SQL over one table
lake         `Lake`, from which analysts start
results      the rows of windows, streams and fleet-wide values, as Arrow tables
shared       shared variables: their meaning and their values
lowering     readable values beside stored integers
feed         rows that were appended after a version of a table
coverage     the frontier, and which devices hold it
keyed_rows   the rows of results that belong to a key, as devices' entries hold them
controls     the log of a program's parameters, as rows
checkpoint   how far the streaming query has read, and torn files of it
statements   what each commit of the job states of the other tables
store_id     the id of the lake as a store, another one since it was put back
room         whether the lake's disk has room for a commit
torn         commits that a power cut may have torn, and what keeps them whole
failed       why the job fails, as it notes it for those who look at the lake
held         the scans that the job cannot go on with, noted likewise
status       all of a lake in one report
follower     the newest windows, for a page that shows them
"""
