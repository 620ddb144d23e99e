//! A hundred calls at once: answered one after the other, as the original wants it, or all in one reply.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Group;
use super::child::Child;
use super::samples::{Repeats, Wanted, alone};
use super::talk::{ENDLESS, Step, Talk, Waiting, Way};
use crate::figure::{Figure, Target};

pub(super) const GROUP: Group = Group { rows: &[ONE_BY_ONE, BATCHED], measure };

const ONE_BY_ONE: &str = "mustard/fan-out-one-by-one";
const BATCHED: &str = "mustard/fan-out-batched";

const BATCHED_GOAL: Target = Target::Processor(Duration::from_millis(1));

const CALLS: u32 = 100;
const REPEATS: Repeats = Repeats { rounds: 20, batch: 10 };

/// Its value depends on which call got which answer.
const SCRIPT: &str = "async function main() {
  const got = await Promise.all(Array.from({ length: 100 }, (_, i) => fetch_data(i)));
  return got.reduce((sum, answer, i) => sum + answer * i, 0);
}
main();";

fn measure() -> Result<Vec<Figure>> {
    let mut talks = [Talk::with(Child::sidecar()?)];
    let program = talks[0].program(SCRIPT)?;
    let wanted = Wanted { name: ONE_BY_ONE, goal: Target::Shown };
    let mut one_by_one = alone(wanted, REPEATS, &mut talks, |talks| one_by_one(&mut talks[0], &program))?;
    one_by_one.note = "start, 100 hops, end".into();
    talks[0].hello(&["batch"])?;
    let wanted = Wanted { name: BATCHED, goal: BATCHED_GOAL };
    let mut batched = alone(wanted, REPEATS, &mut talks, |talks| batched(&mut talks[0], &program))?;
    batched.note = "start, 1 hop with 100 answers, end".into();
    Ok(vec![one_by_one, batched])
}

fn one_by_one(talk: &mut Talk, program: &str) -> Result<()> {
    let mut waiting = Waiting::default();
    talk.start(program, ENDLESS)?.keep(&mut waiting)?;
    for call in 0..CALLS - 1 {
        talk.resume(Way::Cached, &waiting, ENDLESS, answer(call))?.keep(&mut waiting)?;
    }
    check(talk.resume(Way::Cached, &waiting, ENDLESS, answer(CALLS - 1))?)
}

fn batched(talk: &mut Talk, program: &str) -> Result<()> {
    let mut waiting = Waiting::default();
    let reply = talk.start(program, ENDLESS)?.keep(&mut waiting)?;
    let calls = reply.header.matches("\"call_id\":").count();
    ensure!(calls == CALLS as usize, "{calls} calls are outstanding");
    // Call ids count from 1 in the order of the calls; the last is answered first.
    let answers: Vec<(u64, u32)> = (0..CALLS).rev().map(|call| (u64::from(call) + 1, answer(call))).collect();
    check(talk.resume_batch(Way::Cached, &waiting, ENDLESS, &answers)?)
}

fn answer(call: u32) -> u32 {
    call * 3 + 1
}

fn check(step: Step<'_>) -> Result<()> {
    let expected: u32 = (0..CALLS).map(|call| answer(call) * call).sum();
    let number = step.number()?;
    ensure!(number == f64::from(expected), "the script computes {number} instead of {expected}");
    Ok(())
}
