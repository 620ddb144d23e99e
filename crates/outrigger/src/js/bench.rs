//! `outrigger js bench`: what a script costs, step by step.

use std::time::{Duration, Instant};

use anyhow::bail;
use outrigger_mustard::host::{Capabilities, Ending, HostKey, Plain};
use serde::Serialize;

use super::args::BenchArgs;
use super::tool::{self, Tool};
use super::{launch, show};
use crate::say::{self, Format};
use crate::trees;

pub(crate) async fn run(args: BenchArgs, format: Format) -> anyhow::Result<u8> {
    let source = launch::read_source(&args.file)?;
    let supervisor = trees::supervisor();
    let tools = tool::open(&args.world.tools.allow, &args.world.tools.mcp, &supervisor).await?;
    let host = launch::host(&supervisor, HostKey::random()?)?;

    let began = Instant::now();
    drop(host.pool().lend().await?);
    let start = began.elapsed();

    let began = Instant::now();
    let script = match launch::compile(&host, &source, args.world.lenient_return).await {
        Ok(script) => script,
        Err(error) => return Ok(show::not_compiled(&error, &source.origin, format)),
    };
    let compile = began.elapsed();

    let mut quiet = Capabilities::none();
    for name in ["console.log", "console.warn", "console.error"] {
        quiet = quiet.on(name, |_| async { Plain::Undefined });
    }
    let mut table = launch::table(&tools, quiet);
    for (name, _) in tools.iter().filter(|(_, tool)| matches!(tool, Tool::Person)) {
        table = table.on(name, |_| async { Plain::Null });
    }
    let (mut runs, mut hops, mut largest) = (Vec::new(), 0, 0);
    for _ in 0..args.runs {
        let run = launch::run(&host, &script, &args.world)?.capabilities(table.clone());
        let began = Instant::now();
        let ended = run.go().await;
        runs.push(began.elapsed());
        match ended {
            Ok(Ending::Finished(finished)) => {
                hops = finished.statistics.hops;
                largest = finished.statistics.largest_snapshot;
            }
            Ok(Ending::Parked(_)) => bail!("the script waits for a capability that nobody answers"),
            Err(_) => return Ok(show::ending(ended, &source.origin, format)),
        }
    }
    runs.sort();
    let median = runs.get(runs.len() / 2).copied().unwrap_or_default();
    let measured = Measured {
        event: "bench",
        runs: args.runs,
        start_us: micros(start),
        compile_us: micros(compile),
        run_min_us: micros(runs.first().copied().unwrap_or_default()),
        run_median_us: micros(median),
        run_p99_us: micros(runs.get(runs.len() * 99 / 100).copied().unwrap_or_default()),
        hops,
        per_hop_us: if hops == 0 { None } else { Some(micros(median) / hops as f64) },
        largest_snapshot_bytes: largest,
    };
    match format {
        Format::Json => say::object(&measured),
        Format::Text => print(&measured),
    }
    Ok(show::DONE)
}

#[derive(Serialize)]
struct Measured {
    event: &'static str,
    runs: u32,
    start_us: f64,
    compile_us: f64,
    run_min_us: f64,
    run_median_us: f64,
    run_p99_us: f64,
    hops: u64,
    per_hop_us: Option<f64>,
    largest_snapshot_bytes: u64,
}

fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}

fn print(measured: &Measured) {
    let row = |what: &str, value: f64| anstream::println!("{what:<34}{value:>12.1} µs");
    row("sidecar started, boxed and greeted", measured.start_us);
    row("script compiled", measured.compile_us);
    row("run, fastest", measured.run_min_us);
    row(&format!("run, median of {}", measured.runs), measured.run_median_us);
    row("run, 99th percentile", measured.run_p99_us);
    if let Some(per_hop) = measured.per_hop_us {
        row(&format!("one of its {} host calls, on average", measured.hops), per_hop);
        anstream::println!("{:<34}{:>12} bytes", "largest snapshot", measured.largest_snapshot_bytes);
    }
}
