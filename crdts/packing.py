"""msgpack's encoder, made once: `msgpack.packb` makes one, with its buffer, for each value.

>>> pack((1, "kitchen", None)) == msgpack.packb((1, "kitchen", None))
True
"""

from collections.abc import Callable
from typing import Any, Final

import msgpack

pack: Final[Callable[[Any], bytes]] = msgpack.Packer().pack
"""Returns the bytes of plain data. It calls nothing back, so no other call comes in between; after
what cannot be encoded its buffer is empty again."""
