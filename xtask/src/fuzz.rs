//! `cargo xtask fuzz`: every decoder under libFuzzer, on the stable toolchain.
//!
//! `fuzz/libfuzzer` is one program that picks its target by `FUZZ_TARGET`. It is built with LLVM's coverage
//! instrumentation, which stable rustc passes on. New inputs go to `fuzz/artifacts/corpus`; the committed corpus
//! under `fuzz/corpus` is read and never written, so that a run leaves the work tree clean.

use crate::shell::Line;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What makes the program report which code an input reached.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The targets to run, by the names of their corpora; without any, all.
    targets: Vec<String>,
    /// How long to run each target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// How much memory a target may use before that is a finding.
    #[arg(long, default_value_t = 1024)]
    rss_limit_mb: u32,
}

/// What one target's run came to.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    target: String,
    executions: u64,
    corpus: usize,
    /// The input that broke it.
    finding: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<ExitCode> {
    let targets = choose(&args.targets, known_targets(root)?)?;
    let program = build(root)?;
    let mut reports = Vec::new();
    for target in &targets {
        eprintln!("fuzzing {target} for {} s", args.seconds);
        reports.push(fuzz(root, &program, target, args)?);
    }
    print!("{}", table(&reports));
    let mut found = false;
    for report in &reports {
        if let Some(input) = &report.finding {
            found = true;
            println!("to repeat:\n  FUZZ_TARGET={} {} {}", report.target, program.display(), input.display());
        }
    }
    Ok(if found { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What was asked for, or everything. Nothing at all is an error: a run that fuzzed nothing found nothing.
fn choose(asked: &[String], known: Vec<String>) -> Result<Vec<String>> {
    if known.is_empty() {
        bail!("fuzz/corpus holds no corpus, so there is no target to fuzz");
    }
    if let Some(unknown) = asked.iter().find(|target| !known.contains(target)) {
        bail!("there is no corpus fuzz/corpus/{unknown}; the targets are: {}", known.join(", "));
    }
    Ok(if asked.is_empty() { known } else { asked.to_vec() })
}

fn known_targets(root: &Path) -> Result<Vec<String>> {
    let corpus = root.join("fuzz/corpus");
    let entries = fs::read_dir(&corpus).with_context(|| format!("cannot list {}", corpus.display()))?;
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut targets: Vec<String> = folders.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    targets.sort();
    Ok(targets)
}

/// Builds the driver and returns where cargo put it.
fn build(root: &Path) -> Result<PathBuf> {
    let version = Line::new("rustc", ["-vV"]).stdout(root)?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    eprintln!("building fuzz/libfuzzer");
    // An explicit target keeps the flags away from build scripts, which have no counters to link to. A target
    // folder of its own keeps these flags from rebuilding everybody else's dependencies.
    let folder = root.join("fuzz/libfuzzer");
    let words = ["build", "--release", "--target", host, "--target-dir", "target", "--message-format=json"];
    let messages = Line::cargo(words).env("RUSTFLAGS", COVERAGE).stdout(&folder)?;
    executable(&messages).context("cargo built fuzz/libfuzzer and named no program")
}

fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    programs.next_back()
}

fn fuzz(root: &Path, program: &Path, target: &str, args: &Args) -> Result<Report> {
    let fresh = root.join("fuzz/artifacts/corpus").join(target);
    let findings = root.join("fuzz/artifacts").join(target);
    for folder in [&fresh, &findings] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let committed = root.join("fuzz/corpus").join(target);
    let words = [
        format!("-max_total_time={}", args.seconds),
        format!("-rss_limit_mb={}", args.rss_limit_mb),
        format!("-artifact_prefix={}/", findings.display()),
        "-print_final_stats=1".to_owned(),
        "-timeout=10".to_owned(),
        fresh.display().to_string(),
        committed.display().to_string(),
    ];
    let line = Line::new(&program.to_string_lossy(), words).env("FUZZ_TARGET", target);
    let output = line.capture(root)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let finding = finding(&said);
    if !output.status.success() {
        eprintln!("{}", last_lines(&said, 40));
        if finding.is_none() {
            bail!("`{line}` ended with {} and named no input", output.status);
        }
    }
    let corpus =
        [&fresh, &committed].iter().map(|folder| fs::read_dir(folder).map_or(0, Iterator::count)).sum();
    Ok(Report { target: target.to_owned(), executions: executions(&said), corpus, finding })
}

/// libFuzzer's own count, from the statistics it prints at the end.
fn executions(said: &str) -> u64 {
    let number = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// The file libFuzzer wrote the offending input to.
fn finding(said: &str) -> Option<PathBuf> {
    said.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path.trim().into())
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn table(reports: &[Report]) -> String {
    let mut text = format!("{:<16} {:>12} {:>8} {:>9}\n", "target", "executions", "corpus", "findings");
    for Report { target, executions, corpus, finding } in reports {
        let findings = usize::from(finding.is_some());
        text.push_str(&format!("{target:<16} {executions:>12} {corpus:>8} {findings:>9}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRASH: &str = "==7== ERROR: libFuzzer: deadly signal\nartifact_prefix='x/'; Test unit written to \
                         x/crash-12ab\nBase64: AA==\nstat::number_of_executed_units: 4711\n";

    #[test]
    fn a_run_that_would_fuzz_nothing_is_an_error() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(choose(&[], names(&["lines", "rpc"])).unwrap(), ["lines", "rpc"]);
        assert_eq!(choose(&names(&["rpc"]), names(&["lines", "rpc"])).unwrap(), ["rpc"]);
        let error = choose(&names(&["rcp"]), names(&["lines", "rpc"])).unwrap_err().to_string();
        assert_eq!(error, "there is no corpus fuzz/corpus/rcp; the targets are: lines, rpc");
        assert!(choose(&[], Vec::new()).is_err());
    }

    #[test]
    fn what_libfuzzer_says_becomes_a_row() {
        assert_eq!(executions(CRASH), 4711);
        assert_eq!(finding(CRASH), Some(PathBuf::from("x/crash-12ab")));
        assert_eq!(finding("Done 1000 runs in 1 second(s)\n"), None);
    }

    #[test]
    fn the_table_counts_what_was_found() {
        let report = |target: &str, finding: Option<&str>| Report {
            target: target.into(),
            executions: 1_234_567,
            corpus: 89,
            finding: finding.map(PathBuf::from),
        };
        let expected = "target             executions   corpus  findings\n\
                        lines                 1234567       89         0\n\
                        rpc                   1234567       89         1\n";
        assert_eq!(table(&[report("lines", None), report("rpc", Some("x"))]), expected);
    }

    #[test]
    fn the_program_is_where_cargo_says() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\nnot json\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/t/fuzz\"}\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/t/fuzz")));
        assert_eq!(executable("{\"executable\":null}"), None);
    }

    #[test]
    fn only_the_end_of_a_long_report_is_shown() {
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
        assert_eq!(last_lines("a", 2), "a");
    }
}
