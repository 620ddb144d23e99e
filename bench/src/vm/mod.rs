//! The engine against QuickJS-ng and `node --jitless`: programs, growth, and how long a new engine takes.
//!
//! Every engine gets the same text and must compute the same number. A program is measured wrapped in a function and as
//! a script, because engines treat the two differently and guests write both. What our engine cannot run yet is a row
//! that says so.

mod engines;
mod growth;
mod programs;
pub(crate) mod snapshots;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use outrigger_vm::code::Program as Compiled;

use crate::Filter;
use crate::table::{Goal, Missing, Nanos, Row};
use engines::{Node, Ours, QuickJs};
use programs::{Form, PROGRAMS, Program};

/// What each program may take, in times of QuickJS-ng.
const EACH: Goal = Goal::AtMost(2.0);
/// What they may take in the geometric mean.
const MEAN: Goal = Goal::AtMost(1.0);
/// From a compiled program to the answer of `1+1`.
const NEW_ENGINE: Goal = Goal::Within(Duration::from_micros(20));

const QUICKJS: &str = "QuickJS-ng";
const JITLESS: &str = "node --jitless";

/// Rounds of the two engines that are linked in; each starts a fresh one.
const ROUNDS: usize = 7;
/// Rounds of node: each is a process.
const NODE_ROUNDS: usize = 3;

pub(crate) fn bench(filter: &Filter) -> Result<Vec<Row>> {
    let (mut rows, mut against_node) = (Vec::new(), Vec::new());
    for program in PROGRAMS {
        for form in Form::ALL {
            let name = format!("vm/{}{}", program.name, form.suffix());
            if filter.wants(&name) {
                let [quickjs, node] = contest(program, form, name)?;
                rows.push(quickjs);
                against_node.push(node);
            }
        }
    }
    rows.extend(mean("vm/geometric-mean", &rows, MEAN));
    rows.extend(mean("vm/geometric-mean, node", &against_node, Goal::Shown));
    rows.append(&mut against_node);
    rows.extend(growth::bench(filter)?);
    if filter.wants("vm/new-engine") {
        rows.push(new_engine()?);
    }
    Ok(rows)
}

/// One program in one form: the row against QuickJS-ng and the row against node.
fn contest(program: &Program, form: Form, name: String) -> Result<[Row; 2]> {
    let source = program.source(form);
    let (mut ours, mut quickjs, mut node) = (Best::new(), Best::new(), Best::new());
    for round in 0..ROUNDS {
        ours.enter(Ours::run(&source));
        quickjs.enter(QuickJs::run(&source, program, form));
        if round < NODE_ROUNDS {
            node.enter(Node::run(program, form));
        }
    }
    let quickjs = quickjs.expect("QuickJS-ng")?;
    let node = node.expect("node")?;
    anyhow::ensure!(
        quickjs.answer == node.answer,
        "{name}: QuickJS-ng computes {} and node {}",
        quickjs.answer,
        node.answer
    );
    let ours = ours.against(&node.answer);
    let row = |baseline, theirs: &Measured, goal| Row {
        name: name.clone(),
        unit: "run",
        ours: ours.clone(),
        baseline,
        theirs: Nanos::each(theirs.time, 1),
        goal,
    };
    Ok([row(QUICKJS, &quickjs, EACH), row(JITLESS, &node, Goal::Shown)])
}

/// One run: how long it took and what it computed.
#[derive(Clone, Debug)]
struct Measured {
    time: Duration,
    answer: String,
}

/// The best run of several, unless one failed.
struct Best(Option<Result<Measured>>);

impl Best {
    fn new() -> Self {
        Self(None)
    }

    fn enter(&mut self, run: Result<Measured>) {
        self.0 = Some(match (self.0.take(), run) {
            (None, run) => run,
            (Some(Err(error)), _) | (Some(Ok(_)), Err(error)) => Err(error),
            (Some(Ok(best)), Ok(run)) => Ok(if run.time < best.time { run } else { best }),
        });
    }

    fn expect(self, who: &str) -> Result<Measured> {
        let run = self.0.unwrap_or_else(|| Err(anyhow::anyhow!("nothing was run")));
        run.map_err(|error| error.context(format!("{who} failed")))
    }

    /// Our own best, if it computed what the others did.
    fn against(self, answer: &str) -> Result<Nanos, Missing> {
        let run = self.expect("it").map_err(|error| Missing(error.root_cause().to_string()))?;
        if run.answer == answer {
            Ok(Nanos::each(run.time, 1))
        } else {
            Err(Missing(format!("computes {} instead of {answer}", run.answer)))
        }
    }
}

/// The geometric mean of what was compared. Rows without a time of ours are left out here: they miss their own goals.
fn mean(name: &str, rows: &[Row], goal: Goal) -> Option<Row> {
    let pairs: Vec<(f64, f64)> =
        rows.iter().filter_map(|row| Some((row.ours.as_ref().ok()?.0, row.theirs.0))).collect();
    let over = |of: fn(&(f64, f64)) -> f64| {
        Nanos((pairs.iter().map(|pair| of(pair).ln()).sum::<f64>() / pairs.len() as f64).exp())
    };
    let first = rows.first()?;
    (pairs.len() > 1).then(|| Row {
        name: name.to_owned(),
        unit: "run",
        ours: Ok(over(|pair| pair.0)),
        baseline: first.baseline,
        theirs: over(|pair| pair.1),
        goal,
    })
}

/// From a compiled program to the answer of `1+1`, and everything gone again.
fn new_engine() -> Result<Row> {
    let program = Arc::new(Compiled::compile("1+1")?);
    let (mut ours, mut quickjs) = (Best::new(), Best::new());
    for _ in 0..200 {
        ours.enter(Ours::start_and_add(&program));
        quickjs.enter(QuickJs::start_and_add());
    }
    Ok(Row {
        name: "vm/new-engine".to_owned(),
        unit: "engine",
        ours: ours.against("2"),
        baseline: QUICKJS,
        theirs: Nanos::each(quickjs.expect("QuickJS-ng")?.time, 1),
        goal: NEW_ENGINE,
    })
}
