"""The way to the provider: one attempt, and attempts until one is answered or the patience is used up."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from gateway.faults import Fault, FaultClock, backoff, inside, of_status
from gateway.sse import Events, TooLong
from schema.gateway import GatewayConfig

CONNECT_SECONDS = 15.0
SEND_SECONDS = 60.0
PROBE_SECONDS = 30.0
ERROR_BYTES = 2**20
"""Most bytes read of an answer that is an error."""


def connect(config: GatewayConfig) -> httpx.AsyncClient:
    """A client for the configured provider. It follows no redirect and heeds no environment variable.

    Raises:
        ValueError: the base URL, proxy or certificates cannot be used.
    """
    if not config.base_url.startswith(("https://", "http://")):
        raise ValueError(f"base URL {config.base_url!r} is neither http nor https")
    limits = httpx.Limits(max_connections=config.limits.exchanges, max_keepalive_connections=4)
    transport: httpx.AsyncHTTPTransport
    if config.upstream_socket:
        transport = httpx.AsyncHTTPTransport(verify=False, uds=config.upstream_socket, limits=limits)
    else:
        verify: ssl.SSLContext | bool = False
        if config.base_url.startswith("https://"):
            # Only where it is needed: the authorities take memory.
            verify = httpx.create_ssl_context()
            if config.ca_certificates:
                verify.load_verify_locations(cadata=config.ca_certificates)
        transport = httpx.AsyncHTTPTransport(verify=verify, limits=limits, proxy=config.proxy)
    # How long to wait for an answer is decided here, part by part; the client only bounds what has no part.
    timeout = httpx.Timeout(connect=CONNECT_SECONDS, write=SEND_SECONDS, pool=None, read=None)
    return httpx.AsyncClient(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)


@dataclass(frozen=True)
class Answer:
    """A provider's answer: all of it, or for a stream its first event and the rest as it comes."""

    status: int
    content_type: str
    body: bytes
    rest: AsyncGenerator[bytes] | None = None
    """None when ``body`` is all. Raises Fault where the stream breaks."""


@dataclass(frozen=True)
class Asked:
    """A request as it goes out."""

    endpoint: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Effort:
    """What reaching one answer took."""

    seq: int = 0
    attempts: int = 0
    uncounted: int = 0
    """Attempts that broke after the request was sent."""
    asking: bool = False
    """An attempt is on its way."""
    fault: Fault | None = None
    """The last one."""
    fault_seconds: float = 0.0
    """Of failed attempts and the waits after them."""
    began: float = field(default_factory=time.monotonic)


class Bearing(Protocol):
    """Who decides, and tells, that a fault is borne."""

    def failed(self, fault: Fault) -> bool:
        """Called after each attempt that failed: whether the caps leave room for another one."""

    def is_wanted(self) -> bool:
        """Whether somebody still waits for the answer."""

    def waits(self, fault: Fault, attempt: int, seconds: float) -> None:
        """Called before each wait, with the number of the attempt that failed."""


class Provider:
    """Asks, and asks again for as long as the run's patience lasts."""

    def __init__(self, client: httpx.AsyncClient, config: GatewayConfig) -> None:
        self._client = client
        self._base = config.base_url.rstrip("/")
        self._patience = config.patience
        self._reply_bytes = config.limits.reply_bytes
        self.clock = FaultClock(config.patience.budget_seconds)
        self.over = asyncio.Event()
        """Set when the run is: nothing is waited for."""

    async def ask(self, asked: Asked, effort: Effort, bearing: Bearing) -> Answer:
        """The first answer that is not a fault.

        A stream that has begun is never asked for again: its bytes may be with the agent already.

        Raises:
            Fault: none came within the patience, or one that no waiting mends.
        """

        def wait(state: RetryCallState) -> float:
            fault = _fault(state)
            return backoff(state.attempt_number) if fault.retry_after is None else fault.retry_after

        def stop(state: RetryCallState) -> bool:
            return state.attempt_number >= self._patience.attempts or wait(state) > self.clock.left

        def before_sleep(state: RetryCallState) -> None:
            # Ahead of the wait, so that whatever is told during it says the same.
            now = time.monotonic()
            self.clock.add(now, now + state.upcoming_sleep, effort.seq)
            bearing.waits(_fault(state), state.attempt_number, state.upcoming_sleep)

        async def sleep(seconds: float) -> None:
            began = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.over.wait()
            self.lost(effort, began)

        async for attempt in AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, Fault) and not error.final),
            wait=wait,
            stop=stop,
            sleep=sleep,
            before_sleep=before_sleep,
            reraise=True,
        ):
            with attempt:
                return await self._attempt(asked, effort, bearing)
        raise AssertionError("tenacity ends with an answer or an error")

    async def probe(self, asked: Asked, effort: Effort) -> Answer:
        """One attempt of the gateway's own; its time is nobody's fault.

        Raises:
            Fault: it was not answered.
        """
        effort.attempts, effort.asking = 1, True
        try:
            async with asyncio.timeout(min(PROBE_SECONDS, self._patience.first_byte_seconds)):
                answer = await self._once(asked)
            if answer.rest is not None:
                await answer.rest.aclose()
                raise Fault("nonsense", answer.status, sent=True)
        except TimeoutError:
            effort.uncounted += 1
            raise Fault("stalled", sent=True) from None
        except Fault as fault:
            effort.uncounted += fault.sent
            raise
        return answer

    def lost(self, effort: Effort, began: float) -> None:
        """Count the time since ``began`` as lost to a fault."""
        ended = time.monotonic()
        effort.fault_seconds += ended - began
        self.clock.add(began, ended, effort.seq)

    async def _attempt(self, asked: Asked, effort: Effort, bearing: Bearing) -> Answer:
        if effort.fault and not bearing.is_wanted():
            effort.fault.final = True
            raise effort.fault
        effort.attempts += 1
        effort.asking = True
        began = time.monotonic()
        try:
            answer = await self._once(asked)
        except Fault as fault:
            effort.asking = False
            effort.fault = fault
            effort.uncounted += fault.sent
            self.lost(effort, began)
            # Asked first, whatever kind of fault it is: it is charged there.
            fault.final = not bearing.failed(fault) or not bearing.is_wanted() or fault.final
            raise
        # Where it is cancelled instead, the attempt stays on its way.
        effort.asking = False
        return answer

    async def _once(self, asked: Asked) -> Answer:
        request = self._client.build_request(
            "POST",
            self._base + asked.endpoint,
            content=asked.body,
            headers={
                **asked.headers,
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
                # Compressed, a stream's parts would come late and its bytes could not be counted.
                "accept-encoding": "identity",
                "user-agent": "copperbench-gateway",
            },
        )
        try:
            async with asyncio.timeout(self._patience.first_byte_seconds):
                response = await self._client.send(request, stream=True)
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            raise _broken(error) from None
        try:
            return await self._read(response)
        except BaseException:
            await response.aclose()
            raise

    async def _read(self, response: httpx.Response) -> Answer:
        status, content_type = response.status_code, response.headers.get("content-type", "")
        chunks = self._chunks(response)
        if 300 <= status < 400:
            raise Fault("redirected", status, final=True)
        if status >= 300:
            try:
                body = await _all(chunks, ERROR_BYTES)
            except Fault as fault:
                # An error whose text did not come is an error: nothing was generated.
                fault.status, fault.sent = status, False
                raise
            return _refusal(status, response.headers, body)
        if content_type.startswith("text/event-stream"):
            return await self._opened(response, chunks)
        body = await _all(chunks, self._reply_bytes)
        try:
            whole = isinstance(json.loads(body), dict)
        except (ValueError, RecursionError):
            whole = False
        if not whole:
            raise Fault("nonsense", status, sent=True)
        error = inside(body)
        return _refusal(error, response.headers, body) if error else Answer(status, content_type, body)

    async def _opened(self, response: httpx.Response, chunks: AsyncGenerator[bytes]) -> Answer:
        """A stream whose first event is there, so that an error in a reply's place is still one to bear."""
        status, events, start = response.status_code, Events(self._reply_bytes), bytearray()
        async for chunk in chunks:
            start += chunk
            if len(start) > self._reply_bytes:
                raise Fault("too-long", status, final=True, sent=True)
            # Comments that keep the connection alive have no data.
            try:
                data = next((event.data for event in events.feed(chunk) if event.data), b"")
            except TooLong:
                raise Fault("too-long", status, final=True, sent=True) from None
            error = inside(data, first=True) if data else None
            if error:
                # No more is read of it.
                await response.aclose()
                return _refusal(error, {}, data)
            if data:
                return Answer(status, "text/event-stream", bytes(start), chunks)
        raise Fault("reset", status, sent=True)

    async def _chunks(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        """A body's parts, none empty; closes the response at its end."""
        parts = response.aiter_bytes()
        patience = self._patience.first_byte_seconds
        try:
            while True:
                began = time.monotonic()
                try:
                    async with asyncio.timeout(patience):
                        part = await anext(parts, None)
                except (httpx.HTTPError, TimeoutError, OSError) as error:
                    fault = _broken(error)
                    fault.waited = time.monotonic() - began
                    raise fault from None
                if part is None:
                    return
                if part:
                    patience = self._patience.idle_seconds
                    yield part
        finally:
            with suppress(httpx.HTTPError, OSError):
                await response.aclose()


async def _all(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise Fault("too-long", final=True, sent=True)
    return bytes(body)


def _refusal(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """What an error is: an answer to pass on, or a fault.

    Raises:
        Fault: it is one.
    """
    fault = of_status(status, headers, body, time.time())
    if fault:
        raise fault
    return Answer(status, headers.get("content-type", "application/json"), body)


def _broken(error: BaseException) -> Fault:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return Fault("unreachable")
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return Fault("stalled", sent=True)
    return Fault("reset", sent=True)


def _fault(state: RetryCallState) -> Fault:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Fault)  # noqa: S101  # no other error is retried
    return error
