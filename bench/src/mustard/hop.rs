//! One hop: a script that waits for the host is answered, goes on, and waits again.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Group;
use super::child::{Child, Patience};
use super::samples::{Repeats, Wanted, against_echo};
use super::talk::{ENDLESS, Talk, Waiting, Way};
use crate::figure::{Bytes, Figure, Target, size};

pub(super) const GROUP: Group = Group {
    rows: &[
        "mustard/hop-cached",
        "mustard/hop-cached-looking",
        "mustard/hop-raw",
        "mustard/hop-other-process",
        "mustard/hop-other-process-looking",
        "mustard/hop-cached-1000-rows",
        "mustard/hop-raw-1000-rows",
        "mustard/hop-other-process-1000-rows",
        "mustard/hop-cached-5000-rows",
        "mustard/hop-raw-5000-rows",
        "mustard/hop-other-process-5000-rows",
    ],
    measure,
};

const SMALL: Repeats = Repeats { rounds: 20, batch: 250 };
const LARGE: Repeats = Repeats { rounds: 20, batch: 25 };

const CACHED: Target = Target::Wall(Duration::from_micros(25));
const RAW: Target = Target::Wall(Duration::from_micros(40));
const FIVE_THOUSAND: Target = Target::Wall(Duration::from_micros(400));

/// Who is resumed.
#[derive(Clone, Copy)]
enum Where {
    /// The process that suspended.
    Same(Way),
    /// Another one: two processes take turns, and neither knows what the other did.
    Other,
}

struct Hop {
    rows: u32,
    who: Where,
    patience: Patience,
    repeats: Repeats,
    goal: Target,
}

fn measure() -> Result<Vec<Figure>> {
    let hop = |rows, who, repeats, goal| Hop { rows, who, patience: Patience::Sleeps, repeats, goal };
    let looking = |hop| Hop { patience: Patience::Looks, ..hop };
    let (cached, raw, other) = (Where::Same(Way::Cached), Where::Same(Way::Bytes), Where::Other);
    let hops = [
        hop(0, cached, SMALL, CACHED),
        looking(hop(0, cached, SMALL, CACHED)),
        hop(0, raw, SMALL, RAW),
        hop(0, other, SMALL, RAW),
        looking(hop(0, other, SMALL, RAW)),
        hop(1000, cached, LARGE, Target::Shown),
        hop(1000, raw, LARGE, Target::Shown),
        hop(1000, other, LARGE, Target::Shown),
        hop(5000, cached, LARGE, FIVE_THOUSAND),
        hop(5000, raw, LARGE, FIVE_THOUSAND),
        hop(5000, other, LARGE, FIVE_THOUSAND),
    ];
    GROUP.rows.iter().zip(&hops).map(|(name, hop)| one(name, hop)).collect()
}

fn one(name: &'static str, hop: &Hop) -> Result<Figure> {
    let mut first = Talk::with(Child::sidecar()?);
    let program = first.program(&script(hop.rows))?;
    let mut waiting = Waiting::default();
    first.start(&program, ENDLESS)?.keep(&mut waiting)?;
    let (mut talks, way) = match hop.who {
        Where::Same(way) => (vec![first], way),
        Where::Other => (vec![first, Talk::with(Child::sidecar()?)], Way::BytesAndPolicy),
    };
    talks.iter_mut().for_each(|talk| talk.child.patience = hop.patience);
    let (mut turn, mut answer) = (0, 0);
    let mut figure = against_echo(Wanted { name, goal: hop.goal }, hop.repeats, &mut talks, |talks| {
        turn += 1;
        answer = (answer + 7) % 1000;
        let at = turn % talks.len();
        let talk = talks.get_mut(at).context("every turn has a process")?;
        talk.resume(way, &waiting, ENDLESS, answer)?.keep(&mut waiting)?;
        Ok(())
    })
    .with_context(|| name)?;
    figure.note = format!("snapshot of {}", size(Bytes(waiting.snapshot.len() as u64)));
    Ok(figure)
}

/// Calls for ever, with so many rows in memory of which it touches one between two calls.
fn script(rows: u32) -> String {
    format!(
        "const rows = [];
for (let i = 0; i < {rows}; i++) rows.push({{ id: i, name: 'row ' + i, value: i * 1.5, ok: true }});
let sum = 0;
while (true) {{
  const got = fetch_data(sum);
  if (rows.length > 0) rows[got % rows.length].value = got;
  sum = (sum + got) % 1000;
}}"
    )
}
