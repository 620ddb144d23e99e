//! Growth: four times the work may take five times as long. What is quadratic takes sixteen.

use anyhow::Result;

use super::Best;
use super::engines::Ours;
use crate::Filter;
use crate::table::{Goal, Missing, Nanos, Row};

/// The bound of every probe: a factor of four, the logarithm of a sort, and noise.
const GOAL: Goal = Goal::AtMost(5.0);

const ROUNDS: usize = 7;

/// A text of `bench/probes` that does something `n` times, and the smaller `n`: a few milliseconds' worth.
struct Probe {
    name: &'static str,
    body: &'static str,
    n: u32,
}

macro_rules! probe {
    ($name:literal, $n:literal) => {
        Probe {
            name: concat!("vm/growth/", $name),
            body: include_str!(concat!("../../probes/", $name, ".js")),
            n: $n,
        }
    };
}

const PROBES: &[Probe] = &[
    probe!("append", 100_000),
    probe!("prepend", 50_000),
    probe!("append-then-read", 50_000),
    probe!("index-ascii", 100_000),
    probe!("index-wide", 100_000),
    probe!("push-pop", 100_000),
    probe!("shift", 50_000),
    probe!("keys", 10_000),
    probe!("map-delete", 20_000),
    probe!("sort", 20_000),
    // So many that the smaller run collects garbage too.
    probe!("join-split", 80_000),
    probe!("heap-churn", 20_000),
];

pub(super) fn bench(filter: &Filter) -> Result<Vec<Row>> {
    Ok(PROBES.iter().filter(|probe| filter.wants(probe.name)).map(measure).collect())
}

fn measure(probe: &Probe) -> Row {
    let source = |n: u32| format!("(function () {{\nconst n = {n};\n{}\nreturn result;\n}})();", probe.body);
    let (small, large) = (source(probe.n), source(probe.n * 4));
    let (mut at_n, mut at_4n) = (Best::new(), Best::new());
    for _ in 0..ROUNDS {
        at_n.enter(Ours::run(&small));
        at_4n.enter(Ours::run(&large));
    }
    let time = |best: Best| {
        best.expect("it")
            .map(|run| Nanos::each(run.time, 1))
            .map_err(|error| Missing(error.root_cause().to_string()))
    };
    let at_n = time(at_n);
    Row {
        name: probe.name.to_owned(),
        unit: "run",
        // Without a time at n there is nothing to compare with.
        ours: at_n.clone().and_then(|_| time(at_4n)),
        baseline: "a quarter of it",
        theirs: at_n.unwrap_or(Nanos(f64::NAN)),
        goal: GOAL,
    }
}
