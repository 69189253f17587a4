// SPDX-License-Identifier: BSD-2-Clause
//! Benchmark: begin+end pairs of the real `ProfileSession`, written to a file, finish included. The
//! counterpart of tests/bench/session.c: the same operation, the same arguments, the same output.
//!
//!     rust_session FILE N
//!
//! Prints "N NANOSECONDS".

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use candle_graph::profile::{ProfileConfig, ProfileSession};

fn run(path: &str, n: u64) -> Result<u128> {
    let mut session = ProfileSession::open(path, ProfileConfig::train("Gpt::forward"))?;
    let inputs = ["x".to_string(), "w_qkv".to_string()];
    let start = Instant::now();
    for _ in 0..n {
        let id = session.begin_operation("operation:train:Gpt::forward:3", "matmul", &inputs)?;
        session.end_operation(&id, Some("q_k_v".to_string()))?;
    }
    session.finish()?;
    Ok(start.elapsed().as_nanos())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, n] = args.as_slice() else {
        eprintln!("usage: rust_session FILE N");
        return ExitCode::from(2);
    };
    match n.parse().context("N").and_then(|n| Ok((n, run(path, n)?))) {
        Ok((n, ns)) => {
            println!("{n} {ns}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("rust_session: {error:#}");
            ExitCode::FAILURE
        }
    }
}
