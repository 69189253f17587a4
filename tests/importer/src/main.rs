// SPDX-License-Identifier: BSD-2-Clause
//! What candle-graph's own importer says about runtime/3 files, for the tests to compare with.
//!
//! Every answer comes from the published crate through its public functions; nothing here decides
//! anything. Results are JSON lines on stdout. Usage:
//!
//!     importer verdict FILE...        one line a file: accepted or not, what it holds, averages
//!     importer dump FILE              the imported trace, whole, as one line
//!     importer batch                  many texts on stdin, one verdict a line (for fuzzing)
//!     importer operations DIR         the static operation ids of the model source in DIR
//!     importer profile DIR FILE       FILE merged into that model: the `profile` query's answer

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use candle_graph::discover::{analyze, ScanOptions};
use candle_graph::query::{execute, QueryKind, QueryRequest};
use candle_graph::runtime::{parse, RuntimeTrace};
use serde_json::{json, Value};

fn accepted(file: &str, trace: &RuntimeTrace) -> Value {
    let durations: Vec<u64> = trace.operations.iter().filter_map(|op| op.duration_ns).collect();
    let total = durations.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    json!({
        "file": file,
        "accepted": true,
        "schema": trace.schema,
        "entrypoint": trace.run.entrypoint,
        "phase": trace.run.phase,
        "operations": trace.operations.len(),
        "timed_operations": durations.len(),
        "avg_operation_duration_ns": total.checked_div(durations.len() as u64),
        "edges": trace.edge_timings.len(),
        "tensors": trace.tensors.len(),
        "values": trace.values.len(),
        "gradients": trace.gradients.len(),
    })
}

/// The verdict on one file's text; a file that is not UTF-8 never reaches the importer.
fn verdict(file: &str) -> Value {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return json!({"file": file, "accepted": false, "error": error.to_string()}),
    };
    match parse(&text) {
        Ok(trace) => accepted(file, &trace),
        Err(error) => json!({"file": file, "accepted": false, "error": format!("{error:#}")}),
    }
}

/// Each case is a decimal length, a newline and that many bytes; each answer is `1`, or `0` and why.
fn batch() -> Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    let mut head = String::new();
    loop {
        head.clear();
        if input.read_line(&mut head)? == 0 {
            break;
        }
        let mut bytes = vec![0; head.trim().parse().context("length of a case")?];
        input.read_exact(&mut bytes)?;
        match String::from_utf8(bytes).map_err(anyhow::Error::from).and_then(|t| parse(&t)) {
            Ok(_) => writeln!(output, "1")?,
            Err(error) => writeln!(output, "0 {:?}", format!("{error:#}"))?,
        }
    }
    output.flush().context("writing verdicts")
}

fn options(trace: Option<PathBuf>) -> ScanOptions {
    ScanOptions { runtime_trace: trace, dataflow: true, ..ScanOptions::default() }
}

fn operations(source: &Path) -> Result<()> {
    for operation in analyze(source, &options(None))?.operations {
        println!("{}", json!({"id": operation.id, "name": operation.name}));
    }
    Ok(())
}

fn profile(source: &Path, trace: &Path) -> Result<()> {
    let model = analyze(source, &options(Some(trace.to_path_buf())))?;
    let answer = execute(&model, &QueryRequest::new(QueryKind::Profile))?;
    let item = answer.items.first().context("the profile query gave no item")?;
    println!("{item}");
    Ok(())
}

fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["verdict", files @ ..] => files.iter().for_each(|file| println!("{}", verdict(file))),
        ["dump", file] => {
            let text = std::fs::read_to_string(file).with_context(|| file.to_string())?;
            println!("{}", serde_json::to_string(&parse(&text)?)?);
        }
        ["batch"] => batch()?,
        ["operations", source] => operations(Path::new(source))?,
        ["profile", source, trace] => profile(Path::new(source), Path::new(trace))?,
        _ => bail!("usage: importer verdict FILE... | dump FILE | batch | operations DIR | profile DIR FILE"),
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("importer: {error:#}");
            ExitCode::FAILURE
        }
    }
}
