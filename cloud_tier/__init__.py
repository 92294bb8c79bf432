"""The cloud tier: lands the devices' frames in a lake, and merges them in Spark.

The order in which data flows through it:

lander     takes frames from the broker into the lake's table `landing`
job        the Spark job: one batch of `landing` after another becomes windows and values
lake       the lake's tables, what their columns mean, and how results are read without Spark
spark      a Spark session that writes Delta tables, and all that it needs
command    `lasp-edge cloud`, `lander`, `windows` and `globals`

The rules that need no Arrow, Delta or Spark are in `lasp_edge.protocol`: which frames are taken
(`acceptance`), the `frontier`, `spans` of windows that may have changed, and a row's `status`.
"""
