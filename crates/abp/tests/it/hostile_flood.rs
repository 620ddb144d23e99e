//! Children that say very much: memory stays bounded, and an ordinary stream is fast. Each test has a process of its own,
//! because it looks at the memory of the whole.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use libtest_mimic::Trial;
use outrigger_abp::host::{How, RunControl, Terms, Watcher, Wish};
use outrigger_abp::protocol::AgentEvent;

use crate::host_kit::{alone, order, peak_mib, play, quick, run_id, start};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        alone("a_line_of_50_mb_is_accepted", long_line),
        alone("a_line_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not", line_limit),
        alone("a_child_that_writes_400_mb_without_a_newline_fails_at_the_limit", no_newline),
        alone("a_child_that_writes_400_mb_before_hello_fails_at_the_limit", no_newline_before_hello),
        alone("a_million_events_need_no_more_memory_than_ten", million_events),
        alone("a_hundred_thousand_tiny_writes_are_put_together", tiny_writes),
        alone("a_child_that_floods_stderr_neither_blocks_nor_fills_memory", stderr_flood),
        alone("a_million_lines_of_noise_leave_a_handful_of_warnings", noise_flood),
    ]
}

/// Plays a child that talks much: `flood RUN COUNT` or `tiny RUN COUNT`.
pub(crate) fn child(args: &[String]) -> ExitCode {
    let [behaviour, run, count] = args else { return ExitCode::from(64) };
    let count: u64 = count.parse().expect("a number");
    let line = event(run, &"x".repeat(20));
    let mut out = std::io::stdout().lock();
    match behaviour.as_str() {
        "flood" => {
            let chunk = line.repeat(100);
            for _ in 0..count / 100 {
                out.write_all(chunk.as_bytes()).expect("stdout");
            }
        }
        "tiny" => {
            let mut bytes = line.bytes().cycle();
            for _ in 0..count * line.len() as u64 {
                let byte = bytes.next().expect("a cycle");
                // Not buffered: a pipe gets every byte by itself.
                rustix::io::write(&out, &[byte]).expect("stdout");
            }
        }
        _ => return ExitCode::from(64),
    }
    ExitCode::SUCCESS
}

/// An event of about 150 bytes, with its newline.
fn event(run: &str, text: &str) -> String {
    format!(
        "{{\"t\":\"event\",\"ref_id\":\"{run}\",\"event\":{{\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"assistant_delta\",\"text\":\"{text}\"}}}}\n"
    )
}

struct Counter {
    events: u64,
    longest: usize,
}

impl Watcher for Counter {
    fn event(&mut self, _event: &AgentEvent<'_>, line: &str) -> Wish {
        self.events += 1;
        self.longest = self.longest.max(line.len());
        Wish::GoOn
    }
}

async fn counted(script: &str, terms: &Terms) -> (Counter, outrigger_abp::host::Ended) {
    let mut sidecar = start(script, terms).await;
    let mut counter = Counter { events: 0, longest: 0 };
    let ended = sidecar.run(&run_id(), &order("flood"), &mut counter, RunControl::none()).await;
    (counter, ended)
}

async fn long_line() {
    let script = "hello; run; event \"$(printf x)\" | tr -d '\\n' | sed 's/\"}}$//'; \
                  head -c 50000000 /dev/zero | tr '\\0' y; echo '\"}}'; final";
    let (counter, ended) = counted(script, &quick()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert!(counter.longest > 50_000_000);
    assert!(peak_mib() < 160, "{} MiB", peak_mib());
}

async fn line_limit() {
    for (bytes, code) in [(1000, "complete"), (1001, "protocol")] {
        // A pong with as many spaces as it takes.
        let script =
            format!("hello; run; printf '{{\"t\":\"pong\",\"seq\":1%{}s\\n' '}}'; final; park", bytes - 19);
        let terms = Terms { max_line_bytes: 1000, ..quick() };
        let played = play(&script, &terms).await;
        assert_eq!(played.code(), code, "{bytes}: {}", played.told());
        if code == "protocol" {
            assert!(played.told().contains("a line of more than 1000 bytes"), "{}", played.told());
        }
    }
}

async fn no_newline() {
    let (_, ended) = counted("hello; run; head -c 400000000 /dev/zero; park", &quick()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.code(), "protocol");
    assert!(failure.what.contains("a line of more than 67108864 bytes"), "{failure}");
    assert!(peak_mib() < 110, "{} MiB", peak_mib());
}

async fn no_newline_before_hello() {
    let played = play("head -c 400000000 /dev/zero; park", &quick()).await;
    assert_eq!(played.code(), "handshake", "{}", played.told());
    assert!(peak_mib() < 110, "{} MiB", peak_mib());
}

async fn million_events() {
    let (_, ended) = counted("hello; run; \"$EXE\" __child flood $id 1000; final", &quick()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    let few = peak_mib();
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let (counter, ended) = counted("hello; run; \"$EXE\" __child flood $id 1000000; final", &quick()).await;
    let (rate, cpu) = (1e6 / begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!((counter.events, ended.observed.events), (1_000_000, 1_000_000));
    assert!(peak_mib() <= few + 2, "{few} MiB for a thousand, {} MiB for a million", peak_mib());
    writeln!(
        std::io::stderr(),
        "{rate:.0} events/s, {cpu:.2} s of processor for a million, {} MiB",
        peak_mib()
    )
    .expect("stderr");
}

/// The processor time of this process, without its children.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let (_, rest) = stat.rsplit_once(") ").expect("a name in brackets");
    let ticks: u32 = rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().expect("ticks")).sum();
    f64::from(ticks) / 100.0
}

async fn tiny_writes() {
    let (counter, ended) = counted("hello; run; \"$EXE\" __child tiny $id 700; final", &quick()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(counter.events, 700);
    assert!(ended.observed.event_bytes > 100_000);
}

async fn stderr_flood() {
    let script = "hello; run; head -c 300000000 /dev/zero | tr '\\0' e >&2; \
                  n=0; while [ $n -lt 1000 ]; do echo line $n >&2; n=$((n+1)); done; event a; fatal x";
    let (counter, ended) = counted(script, &quick()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!((failure.code(), counter.events), ("fatal", 1));
    assert!(failure.stderr.len() <= 20 && failure.to_string().contains("| line 999"), "{failure}");
    assert!(peak_mib() < 40, "{} MiB", peak_mib());
}

async fn noise_flood() {
    let terms = Terms { noise: outrigger_abp::host::Noise::SkipAndWarn, ..quick() };
    let (_, ended) = counted("hello; run; yes 'this is no message' | head -n 1000000; final", &terms).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!((ended.observed.noise, ended.warnings.total()), (1_000_000, 1_000_000));
    assert_eq!(ended.warnings.first().len(), outrigger_abp::host::MOST_WARNINGS);
    assert!(peak_mib() < 40, "{} MiB", peak_mib());
}
