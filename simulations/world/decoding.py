"""Frames that were decoded once, for all who receive them: frames never change."""

from functools import lru_cache

from lasp_edge.protocol.kinds import decode

DECODED = 4_096
"""Decoded frames that are remembered: a message goes to all devices within a few steps."""

decoded = lru_cache(DECODED)(decode)
