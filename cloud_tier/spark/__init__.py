"""A Spark session that writes Delta tables, wherever the job runs.

In order of execution:

prefetch   brings all of it, once
cache      the folder in which it is kept
java       a Java runtime for Spark
jars       Delta Lake's JARs
driver     Spark's driver JVM, started directly
master     where Spark may run, as a person says it
session    the session
"""
