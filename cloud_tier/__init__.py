"""The cloud tier: what lands the devices' frames in a lake, and the Spark job that merges them.

The way of a frame, in order of execution:

segments     the lander's log: on disk before the broker may forget
landing      a segment becomes rows of `landing`, in one commit that happens once
lander       takes messages from the broker, lands them, acknowledges
child        the lander as a child process of the job
run, job     the job: one streaming query, its lander, until idle
step         one micro-batch: join, frontier, windows, globals
merge        the lattice join as relational algebra
combination  how partials combine, as SQL aggregates
frontier     before which time nothing more will come
windows      sliding windows from panes, and their revisions
dynamic      dynamic folds by key, with the devices' `inputs`
maintenance  compaction, small files, old files
repair       every window again, from its panes

What they share:

tables       the lake: which tables, what their columns mean
plan, spans  what Spark needs of a program; which windows a batch may have changed
definitions  what results mean, kept in the lake
reading      results without Spark; `query` runs its SQL

What brings Spark:

java         a Java runtime for Spark
jars         Delta Lake's JARs
driver       Spark's driver JVM, started directly
session      a Spark session that writes Delta tables
prefetch     brings all of it, once
cache        where it is kept
"""
