//! The stage `run`: what it means for a test to pass when it is executed.

use anyhow::{Context, Result, bail};
use outrigger_vm::exec::{Limits, LoadError, Step, Vm};
use outrigger_vm::heap::{self, Found, Key, ObjId, atoms};
use outrigger_vm::value::Value;

use crate::engine::{self, OPTIONS};
use crate::harness::Harness;
use crate::meta::{Meta, Negative, Phase};

/// More than any test needs that is not about running out of something.
pub(crate) const LIMITS: Limits = Limits {
    instructions: 200_000_000,
    call_depth: 10_000,
    host_calls: 16,
    heap: heap::Limits { bytes: 256 << 20, records: 16 << 20 },
};

/// What an asynchronous test prints at its end.
const DONE: &str = "Test262:AsyncTestComplete";

/// Executes a test after its harness; an error says why it failed.
pub(crate) fn run(source: &str, meta: &Meta, harness: &mut Harness) -> Result<()> {
    if is_refused_early(meta) {
        return engine::parse(source, meta);
    }
    let mut vm = enter(source, meta, harness, &[])?;
    let step = vm.run();
    judge(&mut vm, &step, meta)
}

/// Whether nothing of the test may be executed.
pub(crate) fn is_refused_early(meta: &Meta) -> bool {
    meta.negative.as_ref().is_some_and(|negative| negative.phase == Phase::Parse)
}

/// A machine that has run the harness and stands before the test.
pub(crate) fn enter(source: &str, meta: &Meta, harness: &mut Harness, capabilities: &[&str]) -> Result<Vm> {
    let mut vm = Vm::new(LIMITS, capabilities).context("starting the engine")?;
    load(&mut vm, &harness.before(meta)?).context("harness")?;
    if let Step::Threw(thrown) = vm.run() {
        bail!("harness: threw {}", describe(&mut vm, thrown));
    }
    load(&mut vm, source)?;
    Ok(vm)
}

/// Enters a script that shares its names with those before it.
fn load(vm: &mut Vm, source: &str) -> Result<()> {
    // The last statement keeps the value of the script from being a promise, which would be waited for.
    match vm.load_with(&format!("{source}\n;void 0;"), &OPTIONS) {
        Ok(()) => Ok(()),
        Err(LoadError::Parse(problems)) => {
            let problem = problems.first().map_or("for no reason", |problem| problem.message.as_ref());
            bail!("refused: {problem}")
        }
        Err(error) => bail!("refused: {error}"),
    }
}

/// Whether a test that stopped like this has passed.
pub(crate) fn judge(vm: &mut Vm, step: &Step, meta: &Meta) -> Result<()> {
    match (step, &meta.negative) {
        (Step::Limit(limit), _) => bail!("limit: {limit}"),
        (Step::Suspended(_) | Step::Paused, _) => bail!("suspended, and nobody was to be asked"),
        (Step::Threw(thrown), Some(Negative { error, .. })) => {
            let name = constructor_name(vm, *thrown);
            if name.as_ref() == Some(error) {
                return Ok(());
            }
            bail!("must throw {error}, threw {}", describe(vm, *thrown))
        }
        (Step::Threw(thrown), None) => bail!("threw {}", describe(vm, *thrown)),
        (Step::Completed(_) | Step::Stuck, Some(Negative { error, .. })) => {
            bail!("must throw {error}, threw nothing")
        }
        (Step::Completed(_) | Step::Stuck, None) if meta.has_flag("async") => judge_printed(vm),
        (Step::Completed(_), None) => Ok(()),
        (Step::Stuck, None) => bail!("waits for something that cannot happen"),
    }
}

fn judge_printed(vm: &mut Vm) -> Result<()> {
    let printed = vm.printed().to_vec();
    let lines: Vec<String> = printed.into_iter().map(|line| vm.text(line)).collect();
    match lines.as_slice() {
        [only] if only == DONE => Ok(()),
        [] => bail!("$DONE was never called"),
        lines => bail!("printed {}", lines.join(" and ")),
    }
}

/// `Name: message`, also for errors that do not inherit their name.
fn describe(vm: &mut Vm, thrown: Value) -> String {
    let text = vm.text(thrown);
    match constructor_name(vm, thrown) {
        Some(name) if !text.starts_with(&name) => format!("{name}: {text}"),
        Some(_) | None => text,
    }
}

fn constructor_name(vm: &mut Vm, thrown: Value) -> Option<String> {
    let constructor = data(vm, thrown.as_object()?, Key::atom(atoms::CONSTRUCTOR))?.as_object()?;
    let name = data(vm, constructor, Key::atom(atoms::NAME))?;
    Some(vm.text(name))
}

fn data(vm: &Vm, object: ObjId, key: Key) -> Option<Value> {
    match vm.heap().get(object, key) {
        Found::Data(value) => Some(value),
        Found::Absent | Found::Getter(_) | Found::Exotic(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The verdict on a script with this front matter, under the harness of our own sample.
    fn verdict(front: &str, code: &str) -> Result<(), String> {
        let source = format!("/*---\n{front}\n---*/\n{code}");
        let meta = Meta::read(&source).expect("front matter");
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample");
        run(&source, &meta, &mut Harness::of(&checkout)).map_err(|error| format!("{error:#}"))
    }

    fn fails(front: &str, code: &str, reason: &str) {
        assert_eq!(verdict(front, code), Err(reason.to_owned()), "{front}\n{code}");
    }

    const NEGATIVE: &str = "negative:\n  phase: runtime\n  type: TypeError";

    #[test]
    fn a_test_fails_for_the_reason_it_fails() {
        assert_eq!(verdict("", "assert(true);"), Ok(()));
        fails("", "assert(false, 'no luck');", "threw Test262Error: no luck");
        fails("", "throw 1;", "threw 1");
        fails("", "let let;", "refused: `let` is a reserved word");
        fails("", "for (;;);", "limit: instruction budget exhausted");
        fails(
            "includes: [absent.js]",
            "",
            "reading harness/absent.js: No such file or directory (os error 2)",
        );
    }

    #[test]
    fn a_negative_test_wants_its_own_error_at_its_own_time() {
        assert_eq!(verdict(NEGATIVE, "null.x;"), Ok(()));
        fails(NEGATIVE, "1;", "must throw TypeError, threw nothing");
        fails(NEGATIVE, "nobody;", "must throw TypeError, threw ReferenceError: nobody is not defined");
        let early = "negative:\n  phase: parse\n  type: SyntaxError";
        assert_eq!(verdict(early, "let a, a;"), Ok(()));
        fails(early, "throw new SyntaxError;", "accepted, but it must be refused");
    }

    #[test]
    fn an_asynchronous_test_ends_when_it_says_so() {
        let front = "flags: [async]";
        assert_eq!(verdict(front, "Promise.resolve().then(() => $DONE());"), Ok(()));
        assert_eq!(
            verdict(front, "Promise.reject(1).then(null, () => $DONE()); new Promise(() => {})"),
            Ok(())
        );
        fails(front, "Promise.resolve();", "$DONE was never called");
        fails(front, "$DONE(); $DONE();", &format!("printed {DONE} and {DONE}"));
        let failure = "printed Test262:AsyncTestFailure:TypeError: no";
        fails(front, "Promise.reject(new TypeError('no')).then($DONE, $DONE);", failure);
    }

    #[test]
    fn a_script_whose_last_value_is_a_rejected_promise_has_not_failed() {
        assert_eq!(verdict("", "Promise.reject(1)"), Ok(()));
    }
}
