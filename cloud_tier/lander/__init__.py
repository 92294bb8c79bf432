"""The lander: from the broker's messages to rows of `landing`, without Spark.

In order of execution:

segments   the lander's log: a message is on disk before the broker may forget it
columns    what was accepted from a segment, as one Arrow table
landing    a segment becomes rows of `landing`, in one commit that happens once
run        lands messages and acknowledges them; keeps its witness beside the log
process    a run on a link: the broker forgets a message once it is on disk; until it is stopped
child      the lander as a child process of the job
"""
