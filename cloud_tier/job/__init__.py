"""The Spark job: from the rows of `landing` to windows and fleet-wide values.

In order of execution:

run          the job until it is stopped or idle, with its lander; a line for people
watching     a line of the log and metrics for each batch
streaming    one streaming query, a step for each batch
job          what is merged: a program's plan into a lake
step         one micro-batch: join, frontier, windows, globals
batch        its rows go to `lattice`, and what a step must know of them
control      the log of parameters, and the starts of windows that wait for it
starts       the starts of windows that a step recomputes
formed       the windows of a step: their forms, pieces and starts as rows of small frames
opened       the lake's tables, read and appended without Spark
stored       rows that a step reads and appends: in the driver where they are few
prefilter    rows that cannot change a result, left out beforehand
frames       how few rows and many come into Spark
merge        the lattice join as relational algebra
combination  how partials combine, as SQL aggregates
own_combine  folds that combine by themselves, in Python
selection    rows as the text of one query
totals       what panes add up to in each window, and how many devices are in it
windows      sliding windows from panes, and their revisions
bookmark     what a driver knew at a version of the tables: a start reads on from there
dynamic      dynamic folds by key, with the devices' `inputs`
maintenance  compaction, small files, old files; shared variables, rewritten as their join
repair       every window again, from its panes
"""
