"""The program `rooms` where a job in a process of its own finds it."""

from tests.cloud_tier.support_devices import rooms_program

SPEC = "tests.cloud_tier.cluster.support_rooms:program"

program = rooms_program()
