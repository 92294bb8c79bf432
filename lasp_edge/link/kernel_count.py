"""What the kernel counts of a socket's bytes, without TCP's and IP's own."""

import socket
import struct
from typing import Any

from lasp_edge.link.events import SocketBytes


def kernel_count(sock: Any) -> SocketBytes | None:
    """Return the bytes sent and received; None where nobody counts them."""
    # Linux's struct tcp_info: 8 bytes of small fields, 24 words of 32 bits, then in 64 bits
    # pacing_rate, max_pacing_rate, bytes_acked, bytes_received. Elsewhere there is no count.
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
        return SocketBytes(*struct.unpack_from("=QQ", info, 120))
    except (OSError, AttributeError, struct.error):
        return None
