"""``python3 -m gateway``: reads its configuration from standard input, serves until that input ends.

Exit codes: 0 the input ended; 2 the configuration cannot be used, with one line on standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path

from pydantic import ValidationError

from gateway.app import Desk
from gateway.exchange import Exchanges
from gateway.ledger import Ledger
from gateway.provider import Provider, connect
from gateway.server import serve
from gateway.telling import Teller
from schema.gateway import Closed, GatewayConfig, Listening

CONFIG_BYTES = 2**20


async def run(config: GatewayConfig) -> None:
    """Serve until standard input ends, then wait for replies in flight.

    Raises:
        ValueError: the configuration contradicts itself.
    """
    teller = Teller(sys.stdout.buffer, keep_bodies=config.keep_bodies, refusals=config.caps.refusals)
    ledger = Ledger(config.caps, config.price, config.max_output_tokens)
    async with connect(config) as client:
        provider = Provider(client, config)
        exchanges = Exchanges(config, provider, ledger, teller)
        server = serve(Desk(config, exchanges, teller).app(), config.listen, config.limits)
        serving = asyncio.create_task(server.serve())
        ending = asyncio.create_task(_input_ended())
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        if server.started:
            teller.tell(Listening(at=teller.now()))
        await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
        asked = ending.done()
        unfinished = await exchanges.drain(config.patience.drain_seconds)
        server.should_exit = True
        await serving
        ending.cancel()
        teller.tell(
            Closed(
                at=teller.now(),
                refused=teller.refused,
                unfinished=unfinished,
                excluded_seconds=provider.clock.seconds,
                asked=asked,
            )
        )


async def _input_ended() -> None:
    """Our owner closes our input when the run is over, and the engine does when our owner dies."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(0, "rb", buffering=0))
    while await reader.read(4096):
        pass


def main() -> int:
    """Read the configuration and run."""
    # The socket must be everybody's: the agent is another user on some engines.
    os.umask(0)
    # Unbuffered: what follows the line must stay in the pipe.
    with open(0, "rb", buffering=0, closefd=False) as pipe:
        line = pipe.readline(CONFIG_BYTES)
    try:
        config = GatewayConfig.model_validate_json(line)
        with contextlib.suppress(FileNotFoundError):
            Path(config.listen).unlink()
        asyncio.run(run(config))
    except ValidationError as error:
        # Never the input itself: it holds the key.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "top level"
        sys.stderr.write(f"gateway: configuration: {place}: {first['msg']}\n")
        return 2
    except ValueError as error:
        sys.stderr.write(f"gateway: configuration: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
