//! The three engines behind one face: a text goes in, a time and an answer come out.
//!
//! The time is that of the processor, not of the wall: a run of fifty milliseconds on a busy machine is interrupted every
//! time, and what is left of a ratio then is luck.

#![expect(clippy::disallowed_methods, reason = "node is a peer to be measured, not a child to be supervised")]

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use outrigger_vm::code::Program as Compiled;
use outrigger_vm::exec::{Limits, Step, Vm};
use rquickjs::{CatchResultExt, Coerced, Context, Ctx, FromJs, Object, Promise, Runtime, Value};
use rustix::time::{ClockId, clock_gettime};

use super::Measured;
use super::programs::{Form, Program, Waits};

/// Processor time of this thread since it was started.
struct Stopwatch(Duration);

impl Stopwatch {
    fn start() -> Self {
        Self(Self::now())
    }

    fn elapsed(&self) -> Duration {
        Self::now() - self.0
    }

    fn now() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// Our engine, with limits that no program here meets.
pub(super) struct Ours;

const LIMITS: Limits = Limits {
    instructions: u64::MAX / 2,
    call_depth: 10_000,
    host_calls: 1,
    heap: outrigger_vm::heap::Limits { bytes: 1 << 30, records: 1 << 25 },
};

impl Ours {
    /// Compiles and runs a script in a fresh engine; the engine's own start is not counted.
    pub(super) fn run(source: &str) -> Result<Measured> {
        let mut vm = Vm::new(LIMITS, &[])?;
        let start = Stopwatch::start();
        vm.load(source)?;
        let step = vm.run();
        let time = start.elapsed();
        Ok(Measured { time, answer: Self::answer(&mut vm, step)? })
    }

    /// A new engine on a program that was compiled before, until it has answered and is gone.
    pub(super) fn start_and_add(program: &Arc<Compiled>) -> Result<Measured> {
        let start = Stopwatch::start();
        let mut vm = Vm::new(LIMITS, &[])?;
        vm.load_program(program)?;
        let step = vm.run();
        let answer = Self::answer(&mut vm, step)?;
        drop(vm);
        Ok(Measured { time: start.elapsed(), answer })
    }

    fn answer(vm: &mut Vm, step: Step) -> Result<String> {
        match step {
            Step::Completed(value) => Ok(vm.text(value)),
            Step::Threw(error) => bail!("{}", vm.text(error)),
            Step::Limit(limit) => bail!("{limit}"),
            other => bail!("stopped: {other:?}"),
        }
    }
}

/// QuickJS-ng, with the settings it comes with.
pub(super) struct QuickJs;

impl QuickJs {
    pub(super) fn run(source: &str, program: &Program, form: Form) -> Result<Measured> {
        let runtime = Runtime::new()?;
        let context = Context::full(&runtime)?;
        context.with(|ctx| {
            let start = Stopwatch::start();
            let answer = match (program.waits, form) {
                (Waits::Never, _) => ctx.eval::<Value, _>(source).catch(&ctx).map_err(thrown)?,
                (Waits::Awaits, Form::Wrapped) => {
                    let promise = ctx.eval::<Promise, _>(source).catch(&ctx).map_err(thrown)?;
                    promise.finish().catch(&ctx).map_err(thrown)?
                }
                (Waits::Awaits, Form::TopLevel) => {
                    let promise = ctx.eval_promise(source).catch(&ctx).map_err(thrown)?;
                    let answer: Object = promise.finish().catch(&ctx).map_err(thrown)?;
                    answer.get("value")?
                }
            };
            let time = start.elapsed();
            Ok(Measured { time, answer: text(&ctx, answer)? })
        })
    }

    pub(super) fn start_and_add() -> Result<Measured> {
        let start = Stopwatch::start();
        let runtime = Runtime::new()?;
        let context = Context::full(&runtime)?;
        let answer = context.with(|ctx| text(&ctx, ctx.eval::<Value, _>("1+1")?))?;
        drop(context);
        drop(runtime);
        Ok(Measured { time: start.elapsed(), answer })
    }
}

fn text<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<String> {
    Ok(Coerced::<String>::from_js(ctx, value)?.0)
}

/// A caught exception borrows the engine; its text does not.
fn thrown(error: rquickjs::CaughtError<'_>) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

/// `node --jitless`: an interpreter like ours, with the same rights.
pub(super) struct Node;

impl Node {
    /// One process, which asks around the work how much of the processor it used.
    pub(super) fn run(program: &Program, form: Form) -> Result<Measured> {
        let mut command = Command::new("node");
        command.args(["--jitless", "--single-threaded"]);
        // Only a module may await at top level.
        if program.waits == Waits::Awaits && form == Form::TopLevel {
            command.arg("--input-type=module");
        }
        let output = command
            .arg("--eval")
            .arg(program.source_for_node(form))
            .output()
            .context("node cannot be run")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let line = String::from_utf8(output.stdout)?;
        let (micros, answer) = line.trim().split_once(' ').context("node printed no time and answer")?;
        Ok(Measured { time: Duration::from_micros(micros.parse()?), answer: answer.to_owned() })
    }
}
