"""Serve one model of the ``models.json`` beside this file by llama.cpp's server, until the process is killed.

Run by ``scripts/local-model`` in an environment of its own: nothing else may import what it needs.
"""

import hashlib
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import xllamacpp

SLOTS = 2
"""Conversations held at a time, each with a whole context: parallel runs don't evict each other's prompt."""
CACHE_MIB = 256
"""Most memory for prompts that no slot holds any more."""


def weights(package: str, file: str, sha256: str) -> Path:
    """Path of a model in an installed package, checked: its id in a record stands for these bytes."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        sys.exit(f"package {package} is not installed")
    path = Path(found.origin).parent / file
    with path.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
            sys.exit(f"{path}: other bytes than pinned")
    return path


def serve(name: str, base_url: str) -> None:
    """Load a model and answer on ``base_url``'s host and port."""
    model = json.loads(Path(__file__).with_name("models.json").read_bytes())[name]
    address = urlsplit(base_url)
    # The other half runs agents and kicad-cli; threads that wait for a busy core cost more than they give.
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    params = xllamacpp.CommonParams()
    params.model.path = str(weights(model["package"], model["file"], model["sha256"]))
    params.model_alias = {name}
    params.hostnames, params.port = [address.hostname], address.port
    params.n_parallel, params.n_ctx = SLOTS, SLOTS * model["contextTokens"]
    params.n_predict = model["outputTokens"]
    params.ctx_shift = False  # a prompt that does not fit is refused, never cut in silence
    params.cache_ram_mib = CACHE_MIB
    params.sampling.temp, params.sampling.top_p = model["temperature"], model["topP"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.endpoint_metrics, params.ui = True, False
    server = xllamacpp.Server(params)
    sys.stderr.write(f"{name} answers at {server.listening_address}, threads: {threads}\n")
    threading.Event().wait()


if __name__ == "__main__":
    serve(*sys.argv[1:])
