"""The program of a local model's server: llama.cpp's own, until its standard input ends.

Run as a file, with xllamacpp alone. It lives apart from the process that asks, since llama.cpp holds Python's lock
while it loads, and waits for ever for the requests under way when it is stopped.
"""

from __future__ import annotations

import os
import sys

SLOTS = 2
"""Requests that the server answers at once."""

SLOT_TOKENS = 8192
"""The context of a slot; llama.cpp takes the context that the model was trained with where that is shorter."""

_PROMPT_CACHE_MIB = 1024
_ERRORS_ONLY = 1


def main(file: str, name: str, threads: int) -> None:
    """Load a model file, write the server's address, and serve until the process that started it ends."""
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = file
    params.model_alias = {name}
    params.api_keys = [sys.stdin.readline().strip()]
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * SLOT_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.ui = False
    params.verbosity = _ERRORS_ONLY
    try:
        server = Server(params)
    except RuntimeError:  # llama.cpp has written why
        os._exit(1)
    print(server.listening_address, flush=True)  # noqa: T201
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
