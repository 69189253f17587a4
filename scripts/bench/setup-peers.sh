#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Gets what `make bench` compares with: bpftrace from the distribution, and the Rust ProfileSession,
# which cargo builds at the version that its lock file pins. Without cargo those rows are skipped.
#
#	scripts/bench/setup-peers.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly BUILD=${1:-build}

scripts/setup.sh bench
if command -v cargo >/dev/null; then
	CARGO_TARGET_DIR=$BUILD/bench/rust cargo build --quiet --release --locked \
		--manifest-path tests/bench/rust_session/Cargo.toml
else
	echo "bench: no cargo here: the rows against the Rust ProfileSession will be skipped" >&2
fi
