#!/bin/sh
# Installs the real MCP servers and clients that the tests talk to, and the conformance suites, into target/peers or the
# directory given. Needs npm, node and python3. Its standard output is what to set so that the tests run:
#
#     export "$(tests/peers/install.sh)" && cargo test --workspace --all-features
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
peers=${1:-$here/../../target/peers}
mkdir -p "$peers"
peers=$(CDPATH='' cd -- "$peers" && pwd)

cp "$here/package.json" "$peers/package.json"
# Without scripts: a script is code that nobody looked at, and none of these needs any. The package `node` would: it
# fetches its program by one. So package.json names the programs, of which npm takes the one for this machine.
npm install --prefix "$peers" --ignore-scripts --no-audit --no-fund --no-package-lock >&2

python3 -m venv "$peers/venv"
"$peers/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"

echo "ASTER_PEERS=$peers"
