//! Programs that want to kill their host. Each runs in a process of its own, so that a crash, a hang or a memory leak
//! is seen from outside: it must end by itself, within its time, and never take more memory than it was given twice over.

mod programs;

use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::value::Value;
use programs::{PROGRAMS, Program};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HEAP: usize = 32 << 20;

const LIMITS: Limits = Limits {
    instructions: 30_000_000,
    call_depth: 4_000,
    host_calls: 16,
    heap: outrigger_vm::heap::Limits { bytes: HEAP, records: 2 << 20 },
};

/// What the engine needs beside the guest's heap: the built-ins, the compiled program, the test program itself.
const BASE: usize = 48 << 20;

/// Far more than any program needs on an idle machine: only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

const CHOICE: &str = "OUTRIGGER_HOSTILE_PROGRAM";

/// Not a test of its own: what the children of the test below run.
#[test]
fn one_hostile_program_if_one_was_chosen() {
    let Ok(choice) = std::env::var(CHOICE) else { return };
    let program = PROGRAMS.iter().find(|p| p.name == choice).expect("the parent chose it");
    let source = (program.source)();
    // The limit on depth is for the parser's stack too: it must hold on a thread with little of it.
    let small = std::thread::Builder::new().stack_size(2 << 20);
    let ended = small.spawn(move || run(&source)).expect("a thread starts").join();
    // The parent reads when the child is gone: what does not fit into a pipe would wait for it for ever.
    println!("\noutcome: {:.200}", ended.unwrap_or_else(|_| "panic".to_owned()));
}

fn run(source: &str) -> String {
    let mut vm = Vm::new(LIMITS, &["ask"]).expect("an empty engine fits");
    if let Err(error) = vm.load(source) {
        return format!("refused: {error}");
    }
    let mut step = vm.run();
    let mut asked = 0;
    while let Step::Suspended(_) = step {
        asked += 1;
        if asked > 1000 {
            return "asked for ever".to_owned();
        }
        step = vm.resume(Ok(Value::int(asked)));
    }
    match step {
        Step::Completed(v) => format!("value {}", vm.text(v)),
        Step::Threw(e) => format!("threw {}", vm.text(e)),
        Step::Limit(limit) => format!("limit {limit}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn hostile_programs_end_by_themselves_within_their_time_and_memory() {
    let mut wrong = Vec::new();
    let mut queue = PROGRAMS.iter();
    let mut running = Vec::new();
    loop {
        while running.len() < 2 {
            let Some(program) = queue.next() else { break };
            running.push(start(program));
        }
        if running.is_empty() {
            break;
        }
        let (program, child, since) = running.remove(0);
        if let Err(problem) = judge(program, child, since) {
            wrong.push(format!("{}: {problem}", program.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

type Running = (&'static Program, std::process::Child, Instant);

fn start(program: &'static Program) -> Running {
    let itself = std::env::current_exe().expect("a running program has a path");
    #[expect(clippy::disallowed_methods, reason = "a crash must be seen from outside")]
    let child = Command::new(itself)
        .args([
            "--exact",
            "hostile::one_hostile_program_if_one_was_chosen",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHOICE, program.name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test program starts again");
    (program, child, Instant::now())
}

fn judge(program: &Program, mut child: std::process::Child, since: Instant) -> Result<(), String> {
    let mut peak = 0;
    let status = loop {
        peak = peak.max(peak_memory(child.id()));
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        if since.elapsed() > PATIENCE {
            child.kill().map_err(|e| e.to_string())?;
            return Err(format!("still running after {PATIENCE:?}"));
        }
        std::thread::park_timeout(Duration::from_millis(2));
    };
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let outcome = text.lines().find_map(|line| line.strip_prefix("outcome: ")).unwrap_or("none");
    if !status.success() {
        return Err(format!("{status}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    if peak > 2 * HEAP + BASE {
        return Err(format!("{} MiB at its peak; ended with {outcome}", peak >> 20));
    }
    match program.ends.iter().any(|end| outcome.starts_with(end)) {
        true => Ok(()),
        false => Err(format!("ended with {outcome:?}, wanted one of {:?}", program.ends)),
    }
}

/// The most memory the process has had so far, in bytes; zero when it is gone.
fn peak_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes: usize = line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    kilobytes << 10
}
