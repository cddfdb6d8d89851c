"""What servers of this program share: threads, an address, and a sentence where they cannot listen."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rlea.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class LocalServer(ThreadingHTTPServer):
    """An HTTP server at one address."""

    daemon_threads = True  # Ctrl-C need not wait for a client that keeps its connection open

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in host:
            import socket

            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), handler)
        except (OSError, OverflowError, UnicodeError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise InputError(
                f"cannot listen at {host} port {port}: {reason.lower()}", remedy="choose another --port or --host"
            ) from None

    @property
    def address(self) -> str:
        """Where the service is, without a slash at the end."""
        host, port = self.server_address[:2]
        shown = host.decode() if isinstance(host, bytes | bytearray) else str(host)
        return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are no news; all else is answered by the handler."""
