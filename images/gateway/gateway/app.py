"""The gateway's own HTTP side: which requests there are, what is refused before anything is forwarded."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway import bodies
from gateway.bodies import NotAllowed
from gateway.chat import Chat
from gateway.exchange import Exchanges, Spent
from gateway.messages import Messages
from gateway.order import Head, Order, Part
from gateway.responses import Responses
from gateway.telling import Teller
from gateway.wires import Wire
from schema.gateway import GatewayConfig, WireProtocol

WIRES: Mapping[WireProtocol, Wire] = {wire.name: wire for wire in (Chat(), Responses(), Messages())}
MODELS = "/v1/models"
QUERIES = (b"", b"beta=true")
"""Query strings that are let pass; none is forwarded."""
FINAL = {"x-should-retry": "false"}
"""Understood by the providers' own client libraries."""


@dataclass
class Desk:
    """Where requests come in."""

    config: GatewayConfig
    exchanges: Exchanges
    teller: Teller

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)

    def app(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route(WIRES[name].path, self._endpoint(WIRES[name]), methods=["POST"])
            for name in dict.fromkeys(self.config.protocols)
        ]
        routes.append(Route(MODELS, self._models, methods=["GET"]))
        app = Starlette(routes=routes, exception_handlers={404: self._unlisted, 405: self._unlisted})
        # Paths count as they stand: nothing is mended for an agent.
        app.router.redirect_slashes = False
        return app

    def _endpoint(self, wire: Wire):  # type: ignore[no-untyped-def]  # noqa: ANN202  # a Starlette endpoint
        async def endpoint(request: Request) -> Response:
            seq = next(self._numbers)
            await self.exchanges.enter()
            begun = False
            try:
                order = await self._order(seq, wire, request)
                await self.exchanges.begin(order)
                begun = True
            except NotAllowed as refusal:
                return self._refuse(seq, wire, refusal.status, str(refusal))
            except Spent as spent:
                return self._refuse(seq, wire, 403, f"the run is over: {spent}")
            except ClientDisconnect:
                self.teller.refuse(seq, 400, "the agent hung up while it sent its request")
                return Response(status_code=400)
            finally:
                if not begun:
                    self.exchanges.leave()
            return await _answer(order, wire, request)

        return endpoint

    async def _order(self, seq: int, wire: Wire, request: Request) -> Order:
        """Read a request and hold it against what is allowed.

        Raises:
            NotAllowed: it is not to be forwarded.
            ClientDisconnect: it did not come whole.
        """
        _plain(request, wire.path)
        raw = await _body(request, self.config.limits.body_bytes, self.config.limits.request_seconds)
        body = bodies.parse(raw, self.config.limits.json_nodes)
        model = body.get("model")
        if model != self.config.model:
            raise NotAllowed(f"this run's model is {self.config.model!r}, not {str(model)[:100]!r}", 403)
        wire.check(body)
        return Order(
            seq=seq,
            wire=wire,
            body=body,
            raw=raw,
            bound=bodies.prompt_bound(raw, wire.pictures(body)),
            stream=body.get("stream") is True,
        )

    def _refuse(self, seq: int, wire: Wire, status: int, message: str) -> Response:
        self.teller.refuse(seq, status, message)
        return JSONResponse(wire.error(status, f"copperbench gateway: {message}"), status, headers=FINAL)

    async def _unlisted(self, request: Request, _: Exception) -> Response:
        seq = next(self._numbers)
        wire = WIRES["anthropic-messages" if "anthropic-version" in request.headers else "openai-chat"]
        listed = ", ".join(f"POST {WIRES[name].path}" for name in self.config.protocols)
        path = request.scope["raw_path"].decode("latin-1")[:100]
        return self._refuse(
            seq, wire, 404, f"{request.method[:20]} {path} is not served; there are {listed}, GET {MODELS}"
        )

    async def _models(self, request: Request) -> Response:
        seq = next(self._numbers)
        model = self.config.model
        if "anthropic-version" in request.headers:
            wire, entry = WIRES["anthropic-messages"], {"type": "model", "id": model, "display_name": model}
        else:
            wire, entry = WIRES["openai-chat"], {"object": "model", "id": model, "owned_by": "copperbench"}
        try:
            _plain(request, MODELS)
        except NotAllowed as refusal:
            return self._refuse(seq, wire, refusal.status, str(refusal))
        return JSONResponse({"object": "list", "data": [entry], "has_more": False})


def _plain(request: Request, path: str) -> None:
    """Refuse what could be read in two ways: an encoded path, a query, an encoded body."""
    if request.scope["raw_path"] != path.encode():
        raise NotAllowed(f"the path must be {path} as it stands", 404)
    if request.scope["query_string"] not in QUERIES:
        raise NotAllowed("a query string is not allowed")
    if request.headers.get("content-encoding", "identity") != "identity":
        raise NotAllowed("a compressed body is not allowed", 415)


async def _body(request: Request, limit: int, seconds: float) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise NotAllowed(f"the body is larger than {limit} bytes", 413)
    except TimeoutError:
        raise NotAllowed(f"the body did not come within {seconds:g} s", 408) from None
    return bytes(body)


async def _answer(order: Order, wire: Wire, request: Request) -> Response:
    head = await _head(order, request)
    if order.abandoned:
        # Nobody reads it.
        return Response(status_code=400)
    if not isinstance(head, Head):
        return JSONResponse(wire.error(500, "the gateway lost this request"), 500, headers=FINAL)
    if not head.content_type.startswith("text/event-stream"):
        body = b"".join([part async for part in _rest(order)])
        return Response(body, head.status, FINAL if head.final else None, head.content_type)
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return StreamingResponse(_rest(order), head.status, headers)


async def _head(order: Order, request: Request) -> Part:
    """How the answer begins. An agent that hangs up before says so to the other side."""
    getting, gone = asyncio.create_task(order.parts.get()), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({getting, gone}, return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            return getting.result()
        order.abandoned = True
        return None
    finally:
        getting.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _rest(order: Order) -> AsyncIterator[bytes]:
    """The rest of an answer. Left early, by an agent that hung up, it says so to the other side."""
    part: Part = b""
    try:
        while isinstance(part := await order.parts.get(), bytes):
            yield part
    finally:
        order.abandoned = order.abandoned or part is not None
        while not order.parts.empty():
            order.parts.get_nowait()
