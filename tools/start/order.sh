#!/usr/bin/env bash
# Writes aster-cli/start.order anew: the functions that run until the first list is served, which the linker then lays side
# by side (aster-cli/build.rs). It needs valgrind, and the program as it is built for release:
#
#     cargo build --release --package aster-cli && tools/start/order.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

program=${CARGO_TARGET_DIR:-target}/release/aster
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

{
    echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"order","version":"1"}}}'
    echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
} | env --ignore-environment HOME="$scratch" PATH="$PATH" \
    valgrind --quiet --tool=callgrind --callgrind-out-file="$scratch/calls" --demangle=no --compress-strings=no \
    "$program" mcp serve | grep --quiet '"aster_mcp"'

sed -n "s/^fn=\([^']*\).*/\1/p" "$scratch/calls" | sort -u >"$scratch/run"
nm --defined-only --format=posix "$program" | awk '$2 ~ /^[TtWw]$/ { print $1 }' | sort -u >"$scratch/own"
{
    echo '# The functions that run until `aster mcp serve` has served its first list; tools/start/order.sh writes this file.'
    comm -12 "$scratch/run" "$scratch/own"
} >aster-cli/start.order
wc -l aster-cli/start.order
