"""The cloud tier: lands the devices' frames in a lake, and merges them in Spark.

The order in which data flows through it:

lander     takes frames from the broker into the lake's table `landing`
job        the Spark job: one batch of `landing` after another becomes windows and values
lake       the lake's tables, what their columns mean, and how results are read without Spark
spark      a Spark session that writes Delta tables, and all that it needs
command    `lasp-edge cloud`, `lander`, `windows` and `globals`

What lander and job share:

plan       what the job needs of a program
frontier   before which time nothing more will come
spans      which windows a batch may have changed
"""
