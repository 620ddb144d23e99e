//! Children that talk too much, and a thousand at once: memory, descriptors, files and idle time stay within their bounds.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use outrigger_supervise::driver::{Child, Settings, Supervisor};
use outrigger_supervise::launch::{Launcher, Status};
use outrigger_supervise::spec::{LogFile, Logs, Spec};
use outrigger_supervise::state::{Final, Phase};

use crate::driver_kit::{logs, shell, supervisor};
use crate::launch_kit::{PATIENCE, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        alone("a_flood_on_stderr_neither_grows_our_memory_nor_stalls_the_child", flood),
        alone("a_thousand_children_run_at_once_and_cost_nothing_while_they_wait", thousand),
        trial("a_line_without_end_is_cut_and_counted", endless_line),
        trial("a_log_file_never_outgrows_its_bounds", bounded_file),
        trial("every_line_is_in_the_log_file_or_counted_as_dropped", counted_file),
        trial("a_log_file_keeps_what_both_streams_of_every_process_said", file_contents),
        trial("a_log_file_that_cannot_be_written_does_not_hurt_the_child", unwritable_file),
    ]
}

/// What is flooded: enough to show that nothing grows with it, and the whole gigabyte where the code is optimised.
const FLOOD_BYTES: u64 = if cfg!(debug_assertions) { 256 << 20 } else { 1 << 30 };

/// A trial that measures its own process and therefore needs one of its own.
fn alone<F: Future<Output = ()>>(name: &'static str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    const ALONE: &str = "SUPERVISE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return trial(name, test);
    }
    Trial::test(name, move || {
        #[expect(clippy::disallowed_methods, reason = "a test of this crate starts itself again")]
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.args(["--exact", name]).env(ALONE, "1").stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Failed::from(String::from_utf8_lossy(&output.stdout).into_owned())),
        }
    })
}

/// Tells a figure to whoever runs the tests.
#[expect(clippy::print_stderr, reason = "the figures are half of what these tests are for")]
fn measured(figures: &str) {
    eprintln!("measured: {figures}");
}

fn own_rss_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = statm.split(' ').nth(1).expect("a second field").parse().expect("a number");
    pages * 4096
}

/// The largest memory use of this process until the child has ended.
async fn peak_rss_until_end(child: &Child) -> u64 {
    let mut peak = 0;
    let mut end = std::pin::pin!(child.wait());
    loop {
        peak = peak.max(own_rss_bytes());
        if tokio::time::timeout(Duration::from_millis(5), &mut end).await.is_ok() {
            return peak;
        }
    }
}

async fn flood() {
    let line = "0123456789".repeat(10);
    let script = format!("yes {line} | head -c {FLOOD_BYTES} >&2; echo >&2; echo last words >&2");
    let directory = tempfile::tempdir().expect("a directory");
    let file = log_file(directory.path(), 1 << 20, 3);
    for file in [None, Some(file)] {
        let named = if file.is_some() { "with a log file" } else { "without a log file" };
        let begin = Instant::now();
        let child = supervisor()
            .start(Spec { logs: Logs { file, ..logs() }, ..shell(&script) })
            .expect("a good spec");
        let peak = peak_rss_until_end(&child).await;
        let took = begin.elapsed();
        let outcome = child.wait().await;
        let (flooded, resident) = (FLOOD_BYTES >> 20, peak >> 20);
        measured(&format!("{flooded} MiB of stderr {named} in {took:?}, peak {resident} MiB resident"));
        assert_eq!(outcome.why, Final::Voluntary);
        let report = outcome.report.expect("it ran");
        assert_eq!(report.stderr.len(), 5);
        assert_eq!(report.stderr[4].text, "last words");
        assert!(peak < 64 << 20, "{} MiB resident", peak >> 20);
    }
    assert!(size_of(directory.path()) <= 3 << 20);
}

async fn endless_line() {
    const BYTES: u64 = 32 << 20;
    let child = supervisor()
        .start(shell(&format!("head -c {BYTES} /dev/zero | tr '\\0' x >&2")))
        .expect("a good spec");
    let report = child.wait().await.report.expect("it ran");
    assert_eq!(report.status, Some(Status::Code(0)));
    assert_eq!(report.stderr.len(), 1);
    assert_eq!((report.stderr[0].text.len(), report.stderr[0].cut_bytes), (1000, BYTES - 1000));
}

fn log_file(directory: &Path, max_bytes: u64, max_files: u32) -> LogFile {
    LogFile { path: directory.join("log"), max_bytes, max_files, bytes_per_second: 1 << 30 }
}

fn size_of(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("the directory").flatten();
    // A file may be renamed or removed between the listing and the question.
    files.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

async fn bounded_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = log_file(directory.path(), 10_000, 3);
    let spec = Spec {
        logs: Logs { file: Some(file), ..logs() },
        ..shell("yes some words | head -c 40000000 >&2; echo >&2; sleep 0.5; echo end")
    };
    let child = supervisor().start(spec).expect("a good spec");
    let mut end = std::pin::pin!(child.wait());
    let mut looks = 0;
    while tokio::time::timeout(Duration::from_millis(1), &mut end).await.is_err() {
        let size = size_of(directory.path());
        assert!(size <= 30_000, "{size} bytes");
        looks += 1;
    }
    assert!(looks > 10, "it was looked at while it grew: {looks} times");
    let log = std::fs::read_to_string(directory.path().join("log")).expect("a log");
    assert!(log.ends_with(" #1 out end\n"), "{log}");
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .expect("the directory")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["log", "log.1", "log.2"]);
}

async fn counted_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = LogFile { bytes_per_second: 2000, ..log_file(directory.path(), 1 << 20, 1) };
    let script = "yes some words | head -n 100000 >&2; sleep 1; echo end >&2";
    let child = supervisor()
        .start(Spec { logs: Logs { file: Some(file), ..logs() }, ..shell(script) })
        .expect("a good spec");
    child.wait().await;
    let log = std::fs::read_to_string(directory.path().join("log")).expect("a log");
    let (mut written, mut dropped) = (0, 0);
    for line in log.lines() {
        match line.split_once(" -- ") {
            Some((_, note)) => {
                dropped += note.split(' ').next().expect("a count").parse::<u32>().expect("a number")
            }
            None => written += 1,
        }
    }
    assert_eq!(written + dropped, 100_001, "{written} written, {dropped} dropped");
    assert!(written < 1000 && log.ends_with("err end\n"), "{log}");
}

async fn file_contents() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = log_file(directory.path(), 10_000, 3);
    let spec =
        Spec { logs: Logs { file: Some(file), ..logs() }, ..shell("echo out 1; echo err 1 >&2; exit 0") };
    supervisor().start(spec.clone()).expect("a good spec").wait().await;
    supervisor().start(spec).expect("a good spec").wait().await;
    let log = std::fs::read_to_string(directory.path().join("log")).expect("a log");
    let mut lines: Vec<_> = log.lines().map(|line| line.split_once("Z ").expect("a time").1).collect();
    lines.sort();
    assert_eq!(lines, ["#1 err err 1", "#1 err err 1", "#1 out out 1", "#1 out out 1"]);
}

async fn unwritable_file() {
    let file =
        LogFile { path: "/proc/no/such/log".into(), max_bytes: 10_000, max_files: 1, bytes_per_second: 1000 };
    let spec = Spec { logs: Logs { file: Some(file), ..logs() }, ..shell("echo hello; exit 0") };
    let outcome = supervisor().start(spec).expect("a good spec").wait().await;
    assert_eq!(outcome.why, Final::Voluntary);
    assert_eq!(outcome.report.expect("it ran").stdout[0].text, "hello");
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

/// Processor time of this thread, which runs all drivers of a test.
fn thread_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    Duration::from_nanos(text.split(' ').next().expect("a first field").parse().expect("a number"))
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("threads").count()
}

async fn thousand() {
    const CHILDREN: usize = 1000;
    let supervisor = Supervisor::new(Settings {
        launcher: Launcher::current_exe(),
        starting_at_once: std::num::NonZeroUsize::new(16).expect("not zero"),
    });
    // The first child makes what is made once.
    supervisor.start(shell("exit 0")).expect("a good spec").wait().await;
    let (descriptors, rss) = (open_descriptors(), own_rss_bytes());

    let begin = Instant::now();
    let children: Vec<_> = (0..CHILDREN)
        .map(|_| supervisor.start(shell("exec sleep 1000").spoken_to()).expect("a good spec"))
        .collect();
    for child in &children {
        child.watch().wait_for(|status| status.phase == Phase::Ready).await.expect("it runs");
    }
    let started = begin.elapsed();
    let (used, grown) = (open_descriptors() - descriptors, own_rss_bytes() - rss);

    let before = thread_cpu();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = thread_cpu() - before;
    let many = threads();

    let begin = Instant::now();
    let kills: Vec<_> =
        children.iter().cloned().map(|child| tokio::spawn(async move { child.kill().await.why })).collect();
    for kill in kills {
        assert_eq!(kill.await.expect("no panic"), Final::Requested);
    }
    let stopped = begin.elapsed();
    drop(children);
    let kib = grown >> 10;
    measured(&format!(
        "{CHILDREN} children ready in {started:?}, all killed in {stopped:?}; {used} descriptors, {kib} KiB resident and \
         {many} threads with them; idle for 2 s at {idle:?} of processor time"
    ));
    assert!(idle < Duration::from_millis(20), "{idle:?} of processor time in 2 s of idleness");
    assert!(used <= CHILDREN * 8, "{used} descriptors");
    assert!(many < 50, "{many} threads");
    crate::launch_kit::until("every descriptor is given back", PATIENCE, || {
        open_descriptors() <= descriptors
    })
    .await;
}
