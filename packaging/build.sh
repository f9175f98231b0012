#!/bin/sh
# Builds target/release/codex as it is shipped for Linux: functions that run together lie together, so a server that waits
# holds about half the memory. `record.py` writes the list of functions. Needs GNU ld; `cargo build --release` needs nothing.
set -eu
cd "$(dirname "$0")/.."
script="$PWD/target/layout.ld"
mkdir -p target
{
    echo "SECTIONS { .text.used : {"
    sed 's/.*/*(.text.& .text.unlikely.&)/' packaging/used.txt
    echo "} } INSERT BEFORE .text;"
} >"$script"
cargo rustc --release --locked --package codex-cli --bin codex -- -C link-arg="-Wl,-T,$script"
