//! What it costs a machine to hop: to be written, to be read with every check, and both after touching one row.
//!
//! The floor is what serde_json takes to write or read a tree of the same rows, in turns with ours: something that anybody
//! would do without thinking about it. It neither finds garbage, nor checks, nor keeps identity.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::snapshot::KnownPrograms;
use outrigger_vm::value::Value;

use crate::Filter;
use crate::figure::{Bytes, Figure, Measured, Spread, Target};

/// A machine with so many live rows, and what is promised about it.
struct Case {
    rows: usize,
    names: [&'static str; 5],
    size: Target,
    snapshot: Target,
    restore: Target,
}

const CASES: [Case; 3] = [
    Case {
        rows: 0,
        names: [
            "vm-snapshots/small/bytes",
            "vm-snapshots/small/snapshot",
            "vm-snapshots/small/restore",
            "vm-snapshots/small/hop",
            "vm-snapshots/small/stringify",
        ],
        size: Target::Size(Bytes(1_024)),
        snapshot: Target::Wall(Duration::from_micros(6)),
        restore: Target::Wall(Duration::from_micros(12)),
    },
    Case {
        rows: 1_000,
        names: [
            "vm-snapshots/1000 rows/bytes",
            "vm-snapshots/1000 rows/snapshot",
            "vm-snapshots/1000 rows/restore",
            "vm-snapshots/1000 rows/hop",
            "vm-snapshots/1000 rows/stringify",
        ],
        size: Target::Size(Bytes(30_000)),
        snapshot: Target::Wall(Duration::from_micros(40)),
        restore: Target::Wall(Duration::from_micros(65)),
    },
    Case {
        rows: 5_000,
        names: [
            "vm-snapshots/5000 rows/bytes",
            "vm-snapshots/5000 rows/snapshot",
            "vm-snapshots/5000 rows/restore",
            "vm-snapshots/5000 rows/hop",
            "vm-snapshots/5000 rows/stringify",
        ],
        size: Target::Size(Bytes(150_000)),
        snapshot: Target::Wall(Duration::from_micros(150)),
        restore: Target::Wall(Duration::from_micros(250)),
    },
];

const LIMITS: Limits = Limits {
    instructions: 1 << 40,
    call_depth: 256,
    host_calls: 128,
    heap: outrigger_vm::heap::Limits { bytes: 64 << 20, records: 1 << 20 },
};

const SERDE: &str = "serde_json, the same rows";
const ROUNDS: usize = 301;

pub(crate) fn bench(filter: &Filter) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for case in &CASES {
        if case.names.iter().any(|name| filter.wants(name)) {
            figures.extend(measure(case)?.into_iter().filter(|figure| filter.wants(figure.name)));
        }
    }
    Ok(figures)
}

fn measure(case: &Case) -> Result<Vec<Figure>> {
    let tree = tree(case.rows);
    let text = serde_json::to_vec(&tree)?;
    let mut vm =
        waiting(&source(case.rows, "const by = ask(n); if (rows.length) rows[n % rows.length].value += by"))?;
    let bytes = vm.snapshot()?;
    let mut known = KnownPrograms::within(8 << 20);
    let snapshot = in_turns(|| Ok(vm.snapshot()?), || Ok(serde_json::to_vec(&tree)?))?;
    let restore = in_turns(
        || Ok(Vm::restore_knowing(&bytes, LIMITS, &mut known)?),
        || Ok(serde_json::from_slice::<serde_json::Value>(&text)?),
    )?;
    let mut current = bytes.clone();
    let hop = in_turns(
        || {
            let mut vm = Vm::restore_knowing(&current, LIMITS, &mut known)?;
            ensure!(matches!(vm.resume(Ok(Value::int(1))), Step::Suspended(_)), "it asks again");
            current = vm.snapshot()?;
            Ok(())
        },
        || {
            let tree: serde_json::Value = serde_json::from_slice(&text)?;
            Ok(serde_json::to_vec(&tree)?)
        },
    )?;
    let mut vm = waiting(&source(case.rows, "JSON.stringify(rows); ask(n)"))?;
    let mut stringify = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(vm.resume(Ok(Value::int(1))));
        stringify.push(start.elapsed());
    }
    let stringify = Spread::of(stringify).context("there were rounds")?;
    let [size_name, snapshot_name, restore_name, hop_name, stringify_name] = case.names;
    let size = Figure {
        name: size_name,
        measured: Ok(Measured::Size(Bytes(bytes.len() as u64))),
        floor: None,
        goal: case.size,
        note: format!("as JSON: {} bytes", text.len()),
    };
    let figure = |name, (ours, floor): (Spread, Option<Spread>), goal, note: &str| Figure {
        name,
        measured: Ok(Measured::Time { wall: ours, processor: None }),
        floor: floor.map(|floor| (SERDE, floor)),
        goal,
        note: note.to_owned(),
    };
    Ok(vec![
        size,
        figure(snapshot_name, snapshot, case.snapshot, "collects garbage first"),
        figure(restore_name, restore, case.restore, "with every check"),
        figure(hop_name, hop, Target::Shown, "restore, touch one row, snapshot"),
        figure(stringify_name, (stringify, None), Target::Shown, "JSON.stringify of the rows by the guest"),
    ])
}

/// A script that keeps so many rows alive and does something between host calls.
fn source(rows: usize, step: &str) -> String {
    let row = "{ id: i, name: 'row ' + i, value: i * 1.5, ok: true }";
    format!(
        "const rows = []; for (let i = 0; i < {rows}; i++) rows.push({row}); for (let n = 0; ; n++) {{ {step}; }}"
    )
}

fn waiting(source: &str) -> Result<Vm> {
    let mut vm = Vm::new(LIMITS, &["ask"])?;
    vm.load(source)?;
    ensure!(matches!(vm.run(), Step::Suspended(_)), "the script asks");
    Ok(vm)
}

fn tree(rows: usize) -> serde_json::Value {
    let row = |i: usize| {
        let value = i as f64 * 1.5;
        serde_json::json!({ "id": i, "name": format!("row {i}"), "value": value, "ok": true })
    };
    (0..rows).map(row).collect()
}

/// Times of two things that are done in turns: ours, and the floor.
fn in_turns<A, B>(
    mut ours: impl FnMut() -> Result<A>,
    mut floor: impl FnMut() -> Result<B>,
) -> Result<(Spread, Option<Spread>)> {
    let (mut our_times, mut floor_times) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for round in 0..=ROUNDS {
        let start = Instant::now();
        drop(black_box(ours()?));
        let our_time = start.elapsed();
        let start = Instant::now();
        drop(black_box(floor()?));
        // The first round is for the caches.
        if round > 0 {
            our_times.push(our_time);
            floor_times.push(start.elapsed());
        }
    }
    Ok((Spread::of(our_times).context("there were rounds")?, Spread::of(floor_times)))
}
