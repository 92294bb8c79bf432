"""The cloud tier: what lands the devices' frames in a lake, and the Spark job that merges them.

java       a Java runtime for Spark
jars       Delta Lake's JARs
driver     Spark's driver JVM, started directly
session    a Spark session that writes Delta tables
prefetch   brings all of it, once
cache      where it is kept
"""
