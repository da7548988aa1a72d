"""Serving on a unix socket, within bounds that hold however the agent behaves."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from schema.gateway import GatewayLimits


def serve(app: Starlette, path: str, limits: GatewayLimits) -> uvicorn.Server:
    """A server, not yet running, on a socket that every user may connect to (the caller's umask is 0)."""
    open_: set[BoundedProtocol] = set()

    class Bound(BoundedProtocol):
        peers = open_
        most = limits.connections
        seconds = limits.request_seconds

    config = uvicorn.Config(
        app,
        uds=path,
        http=Bound,
        loop="asyncio",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        # Idle connections are cheap and counted; clients keep theirs while a model thinks.
        timeout_keep_alive=600,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=limits.header_bytes,
    )
    return uvicorn.Server(config)


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with limits on connections and on the time of a request's head; uvicorn has neither."""

    peers: set[BoundedProtocol]
    most: int
    seconds: float
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse a connection too many by closing it."""
        super().connection_made(transport)
        self.peers.add(self)
        if len(self.peers) > self.most:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.peers.discard(self)
        self._settle()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start the clock at a head's first byte, stop it when the request has begun."""
        if self._deadline is None and self._waiting():
            self._deadline = self.loop.call_later(self.seconds, self._late)
        super().data_received(data)
        if not self._waiting():
            self._settle()

    def _waiting(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _settle(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self.transport.abort()
