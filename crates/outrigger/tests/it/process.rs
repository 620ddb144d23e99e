//! Starting `outrigger`, watching it, and counting what it leaves behind.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long any single thing may take before the test says that it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A mark in the environment of a tree, by which its processes are found wherever they went.
pub(crate) struct Tag(String);

impl Tag {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("OUTRIGGER_TEST_TAG={}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn as_arg(&self) -> &str {
        &self.0
    }

    /// The processes alive that carry the mark. A zombie has no environment and does not count.
    pub(crate) fn carriers(&self) -> BTreeSet<u32> {
        let wanted = self.0.as_bytes();
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir("/proc").expect("/proc can be read").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(environ) = std::fs::read(entry.path().join("environ")) else { continue };
            if environ.split(|byte| *byte == 0).any(|variable| variable == wanted) {
                found.insert(pid);
            }
        }
        found
    }

    /// Waits until at least `count` processes carry the mark.
    pub(crate) fn wait_for(&self, count: usize) {
        wait_until(PATIENCE, || self.carriers().len() >= count)
            .unwrap_or_else(|_| panic!("never saw {count} processes, only {:?}", self.carriers()));
    }

    /// Fails if any process still carries the mark after `within`.
    pub(crate) fn must_be_gone(&self, within: Duration, what: &str) {
        wait_until(within, || self.carriers().is_empty())
            .unwrap_or_else(|_| panic!("{what}: still running after {within:?}: {:?}", self.carriers()));
    }
}

/// Held by tests that take the whole machine, and by those that look at a single moment, so that they do not meet.
pub(crate) fn quiet() -> std::sync::MutexGuard<'static, ()> {
    static QUIET: Mutex<()> = Mutex::new(());
    QUIET.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Polls for a condition of the outside world that sends no event.
pub(crate) fn wait_until(within: Duration, mut condition: impl FnMut() -> bool) -> Result<(), ()> {
    let deadline = Instant::now() + within;
    while !condition() {
        if Instant::now() > deadline {
            return Err(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// `outrigger` with arguments, standard input from a pipe that stays open.
pub(crate) fn outrigger<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A finished run: what it printed and how it ended.
pub(crate) struct Finished {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: ExitStatus,
    /// The most memory the process itself held, if it was measured.
    pub(crate) peak_rss: u64,
}

impl Finished {
    pub(crate) fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("ended by signal {:?}; stderr:\n{}", self.status.signal(), self.stderr))
    }

    /// The lines of `--json` output. Anything else on standard output is a fault.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON on stdout: {line}")))
            .collect()
    }

    /// The one event of a kind, such as `exit`.
    pub(crate) fn event(&self, kind: &str) -> Value {
        let mut all: Vec<_> = self.events().into_iter().filter(|event| event["event"] == kind).collect();
        assert_eq!(all.len(), 1, "{kind} events in:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        all.remove(0)
    }
}

/// Starts a command, waits for its end, and measures its memory on the way.
pub(crate) fn finish(command: &mut Command) -> Finished {
    Running::start(command).finish()
}

/// A run that is under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("outrigger starts");
        let stdout = Stream::read(child.stdout.take().expect("stdout is piped"));
        let stderr = Stream::read(child.stderr.take().expect("stderr is piped"));
        Self { child, stdout, stderr }
    }

    /// Waits until this text was printed on standard output.
    pub(crate) fn wait_for_output(&self, text: &str) {
        self.stdout.wait_for(text);
    }

    /// What was printed on standard output so far.
    pub(crate) fn output(&self) -> String {
        let text = self.stdout.said.0.lock().expect("no reader panics");
        String::from_utf8_lossy(&text).into_owned()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().expect("kill runs");
        assert!(sent.success(), "kill -s {signal} {pid}");
    }

    pub(crate) fn finish(mut self) -> Finished {
        let deadline = Instant::now() + PATIENCE * 4;
        let mut peak_rss = 0;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                break status;
            }
            peak_rss = peak_rss.max(peak_rss_of(self.child.id()));
            if Instant::now() > deadline {
                self.signal("KILL");
                panic!("outrigger hangs; stderr so far:\n{}", self.stderr.finish());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Finished { stdout: self.stdout.finish(), stderr: self.stderr.finish(), status, peak_rss }
    }
}

/// What one stream of the program has said so far, read by a thread of its own.
struct Stream {
    said: Arc<(Mutex<Vec<u8>>, Condvar)>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn read(mut from: impl Read + Send + 'static) -> Self {
        let said = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let shared = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            let (text, changed) = &*shared;
            let mut chunk = vec![0; 65536];
            while let Ok(read @ 1..) = from.read(&mut chunk) {
                let mut text = text.lock().expect("no reader panics");
                // A flood is drained, but only its end is of interest.
                if text.len() > 4 << 20 {
                    text.drain(..2 << 20);
                }
                text.extend_from_slice(&chunk[..read]);
                changed.notify_all();
            }
        });
        Self { said, reader }
    }

    fn wait_for(&self, wanted: &str) {
        let (text, changed) = &*self.said;
        let text = text.lock().expect("no reader panics");
        let missing = |text: &mut Vec<u8>| !String::from_utf8_lossy(text).contains(wanted);
        let (text, waited) = changed.wait_timeout_while(text, PATIENCE, missing).expect("no reader panics");
        assert!(!waited.timed_out(), "never saw `{wanted}`, only:\n{}", String::from_utf8_lossy(&text));
    }

    fn finish(self) -> String {
        self.reader.join().expect("the reader ends with the stream");
        let text = self.said.0.lock().expect("no reader panics");
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// `VmHWM` of a live process: the kernel's own high-water mark, so that sampling it seldom loses nothing.
fn peak_rss_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
