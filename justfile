# `just` lists the recipes.
default:
    @just --list --unsorted

# Everything that needs no network.
test *arguments:
    cargo test --workspace --all-features {{arguments}}

# What the macros say to each misuse.
ui:
    cargo test --package aster-macros --test ui

# Accept what the UI tests and snapshots print now; read the diff before you commit.
bless:
    TRYBUILD=overwrite cargo test --package aster-macros --test ui
    ASTER_BLESS=1 cargo test --package aster --test architecture
    INSTA_UPDATE=always cargo test --workspace --all-features

check:
    cargo fmt --check
    cargo clippy --workspace --all-targets --all-features -- --deny warnings

doc:
    RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --all-features

# With real servers and clients, which it installs into target/peers.
peers:
    export "$(tests/peers/install.sh)" && cargo test --package aster --test real_servers && cargo test --package aster-cli --test clients

# The MCP conformance suites; cargo does not build the example for one test by name.
conformance:
    export "$(tests/peers/install.sh)" && cargo build --package aster --examples && cargo test --package aster --test conformance

# Licences, duplicates and sources of the dependencies; needs cargo-deny.
deny:
    cargo deny check

ci:
    .ci/run
