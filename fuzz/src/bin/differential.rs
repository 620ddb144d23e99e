//! `cargo run --release -p outrigger-fuzz --bin differential -- [COUNT] [SEED]`: generated programs in our engine and in node.
//!
//! For a nightly run and for the desk: it needs node. Programs that print different things are written to
//! `fuzz/artifacts/differential/`, and make the run fail.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the desk")]

use outrigger_fuzz::engine::generate::{Library, program};
use outrigger_vm::exec::{Limits, Step, Vm};
use std::fs;
use std::io::Write as _;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Programs that one node process runs.
const BATCH: usize = 50;

const LIMITS: Limits = Limits {
    instructions: 50_000_000,
    call_depth: 5_000,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 256 << 20, records: 8 << 20 },
};

const DRIVER: &str = "
const vm = require('vm');
const programs = JSON.parse(require('fs').readFileSync(0, 'utf8'));
(async () => {
  const all = [];
  for (const source of programs) {
    const out = [];
    const context = vm.createContext({ print: s => out.push(s) });
    try { vm.runInContext('\"use strict\";' + source, context, { timeout: 5000 }); } catch (e) { out.push('fatal ' + e.name); }
    for (let i = 0; i < 20; i++) await new Promise(r => setImmediate(r));
    all.push(out);
  }
  process.on('unhandledRejection', () => {});
  process.stdout.write(JSON.stringify(all));
})();
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let mut seed: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (mut same, mut different, mut limited) = (0, 0, 0);
    let mut done = 0;
    while done < count {
        let sources: Vec<String> = (0..BATCH.min(count - done)).map(|_| next_program(&mut seed)).collect();
        let Some(expected) = node(&sources) else {
            eprintln!("node is needed on the path for this comparison");
            return ExitCode::from(2);
        };
        for (source, expected) in sources.iter().zip(&expected) {
            done += 1;
            match ours(source) {
                None => limited += 1,
                Some(found) if found == *expected => same += 1,
                Some(found) => {
                    different += 1;
                    keep(done, source, expected, &found);
                }
            }
        }
    }
    println!("{same} the same, {different} different, {limited} beyond a limit");
    if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn next_program(seed: &mut u64) -> String {
    let bytes: Vec<u8> = (0..600)
        .map(|_| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) as u8
        })
        .collect();
    program(&bytes, Library::Common)
}

/// What node prints for each program; `None` when there is no node.
fn node(sources: &[String]) -> Option<Vec<Vec<String>>> {
    #[expect(clippy::disallowed_methods, reason = "a tool for the desk, not part of the product")]
    let mut child = Command::new("node")
        .args(["--unhandled-rejections=none", "-e", DRIVER])
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let input = serde_json::to_vec(sources).ok()?;
    child.stdin.take()?.write_all(&input).ok()?;
    let output = child.wait_with_output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// What our engine prints; `None` when it meets a limit.
fn ours(source: &str) -> Option<Vec<String>> {
    let ran = catch_unwind(|| {
        let mut vm = Vm::new(LIMITS, &[]).ok()?;
        if vm.load(source).is_err() {
            return Some(vec!["fatal SyntaxError".to_owned()]);
        }
        let step = vm.run();
        let mut printed: Vec<String> = Vec::new();
        for v in vm.printed().to_vec() {
            printed.push(vm.text(v));
        }
        match step {
            Step::Limit(_) => return None,
            Step::Threw(e) => printed.push(format!("fatal {}", vm.text(e))),
            _ => {}
        }
        Some(printed)
    });
    ran.unwrap_or_else(|_| Some(vec!["panic".to_owned()]))
}

fn keep(number: usize, source: &str, expected: &[String], found: &[String]) {
    let at = expected.iter().zip(found).position(|(a, b)| a != b).unwrap_or(expected.len().min(found.len()));
    let missing = String::from("(nothing)");
    let (theirs, our) = (expected.get(at).unwrap_or(&missing), found.get(at).unwrap_or(&missing));
    println!("program {number}, line {at}: node {theirs:.200} | ours {our:.200}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts/differential");
    let text = format!("// line {at}\n// node: {theirs}\n// ours: {our}\n{source}");
    if fs::create_dir_all(&folder).is_ok() {
        let _ = fs::write(folder.join(format!("{number}.js")), text);
    }
}
