//! A log as an extension meets it that says too much, too fast, or nothing that is text.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_policy::Millis;

use super::*;
use crate::host::record::stamp::Now;
use crate::host::record::tests::limits;

struct Bench {
    dir: tempfile::TempDir,
    time: Arc<AtomicU64>,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), time: Arc::new(AtomicU64::new(0)) }
    }

    fn open(&self) -> ExtensionLog {
        self.open_small(3, 1 << 20)
    }

    fn open_small(&self, log_files: u32, log_file_bytes: u64) -> ExtensionLog {
        let time = Arc::clone(&self.time);
        let clock = move || {
            let steady = time.load(Ordering::Relaxed);
            Now { wall: Millis(1_790_000_000_000 + steady), steady: Millis(steady) }
        };
        let limits = Limits { log_files, log_file_bytes, ..limits() };
        ExtensionLog::open_with(self.dir.path(), &limits, Arc::new(clock)).unwrap()
    }

    fn pass_time(&self, millis: u64) {
        self.time.fetch_add(millis, Ordering::Relaxed);
    }

    fn size(&self) -> u64 {
        let files = fs::read_dir(self.dir.path()).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }
}

fn messages(log: &ExtensionLog) -> Vec<String> {
    log.tail(10_000).into_iter().map(|line| line.msg).collect()
}

#[test]
fn a_line_says_when_and_where_and_keeps_control_characters_harmless() {
    let bench = Bench::new();
    let log = bench.open();
    log.line(Stream::Host, Level::Info, "starting");
    log.begin(Some(&SessionId::from_text("01JCX0000000000000000000AB")));
    log.bytes(ChildStream::Stdout, b"\x1b[31mred\x00 \xff\r\n");
    bench.pass_time(5);
    log.bytes(ChildStream::Stderr, "wörld\n".as_bytes());
    log.line(Stream::Ext, Level::Debug, "detail");
    log.flush();
    insta::assert_snapshot!(fs::read_to_string(bench.dir.path().join("current.log")).unwrap(), @r#"
    {"ts":"2026-09-21T14:13:20.000Z","seq":1,"session":null,"stream":"host","level":"info","msg":"starting"}
    {"ts":"2026-09-21T14:13:20.000Z","seq":2,"session":"01JCX0000000000000000000AB","stream":"stdout","level":"info","msg":"\u001b[31mred\u0000 �"}
    {"ts":"2026-09-21T14:13:20.005Z","seq":3,"session":"01JCX0000000000000000000AB","stream":"stderr","level":"warn","msg":"wörld"}
    {"ts":"2026-09-21T14:13:20.005Z","seq":4,"session":"01JCX0000000000000000000AB","stream":"ext","level":"debug","msg":"detail"}
    "#);
}

#[test]
fn a_line_is_whole_at_eight_kibibytes_and_cut_one_byte_past() {
    let bench = Bench::new();
    let log = bench.open();
    for length in [MAX_LINE_BYTES, MAX_LINE_BYTES + 1] {
        log.line(Stream::Ext, Level::Info, &"x".repeat(length));
        log.bytes(ChildStream::Stdout, format!("{}\n", "x".repeat(length)).as_bytes());
    }
    log.line(Stream::Ext, Level::Info, &"é".repeat(MAX_LINE_BYTES));
    log.bytes(ChildStream::Stdout, &[&[0xff; MAX_LINE_BYTES][..], b"\n"].concat());
    let seen: Vec<(usize, bool)> = log.tail(10).iter().map(|line| (line.msg.len(), line.truncated)).collect();
    let cut = (MAX_LINE_BYTES, true);
    let lossy = (MAX_LINE_BYTES - MAX_LINE_BYTES % 3, true);
    assert_eq!(seen, [(MAX_LINE_BYTES, false), (MAX_LINE_BYTES, false), cut, cut, cut, lossy]);
}

#[test]
fn a_thousand_lines_at_once_are_taken_and_the_rest_is_one_record() {
    let bench = Bench::new();
    let log = bench.open();
    let book = crate::host::record::MetricsBook::new();
    log.count_in(book.of(&crate::protocol::ExtensionId::new("a.b").unwrap()));
    for n in 0..1003 {
        log.line(Stream::Stdout, Level::Info, &n.to_string());
    }
    assert_eq!(log.total_dropped(), 3);
    assert!(book.to_text().contains("\nsep_log_dropped_total{ext=\"a.b\"} 3\n"));
    bench.pass_time(10);
    log.line(Stream::Stdout, Level::Info, "after");
    let tail = log.tail(3);
    let seen: Vec<_> = tail.iter().map(|line| (line.seq, line.msg.as_str(), line.dropped)).collect();
    assert_eq!(
        seen,
        [(1000, "999", None), (1001, "3 lines were not written", Some(3)), (1002, "after", None)]
    );
    bench.pass_time(1000);
    for n in 0..202 {
        log.line(Stream::Stdout, Level::Info, &n.to_string());
    }
    let tail = log.tail(2);
    assert_eq!(
        (tail[0].msg.as_str(), tail[1].dropped),
        ("200", Some(1)),
        "a second brings 200, and one was left"
    );
}

#[test]
fn an_extension_that_talks_too_much_cannot_hide_what_the_host_says_about_it() {
    let bench = Bench::new();
    let log = bench.open();
    for n in 0..2000 {
        log.line(Stream::Stdout, Level::Info, &n.to_string());
    }
    log.line(Stream::Host, Level::Info, "refused a connection");
    assert_eq!(log.tail(1)[0].msg, "refused a connection");
    // The host has a measure of its own, and not more.
    for n in 0..1000 {
        log.line(Stream::Host, Level::Info, &n.to_string());
    }
    assert_eq!(log.total_dropped(), 1001);
}

#[test]
fn bytes_without_a_newline_never_grow_memory_and_are_one_line_at_the_end() {
    let bench = Bench::new();
    let log = bench.open();
    for _ in 0..10_000 {
        log.bytes(ChildStream::Stdout, &[b'x'; 10_000]);
    }
    let held: usize = log.shared.lock().splitters.values().map(Splitter::capacity).sum();
    assert!(held <= MAX_LINE_BYTES, "{held} bytes are held");
    log.bytes(ChildStream::Stderr, b"half");
    assert_eq!(log.tail(9).len(), 0);
    log.ended();
    let mut seen: Vec<(usize, bool)> =
        log.tail(9).iter().map(|line| (line.msg.len(), line.truncated)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(4, false), (MAX_LINE_BYTES, true)]);
}

#[test]
fn lines_are_the_same_however_the_bytes_come() {
    let whole = b"one\r\n\ntwo\xff\nthree";
    for size in 1..whole.len() {
        let bench = Bench::new();
        let log = bench.open();
        for chunk in whole.chunks(size) {
            log.bytes(ChildStream::Stdout, chunk);
        }
        log.ended();
        assert_eq!(messages(&log), ["one", "", "two\u{fffd}", "three"], "in pieces of {size}");
    }
}

#[test]
fn files_together_never_exceed_their_bound() {
    let bench = Bench::new();
    let log = bench.open_small(2, 2000);
    for n in 0..200 {
        log.line(Stream::Stdout, Level::Info, &n.to_string());
        assert!(bench.size() <= 4000);
        bench.pass_time(10);
    }
    let tail = log.tail(1000);
    assert_eq!(tail.last().unwrap().msg, "199");
    assert!(tail.len() > 15 && tail.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq));
    log.line(Stream::Stdout, Level::Info, &"x".repeat(2000));
    log.line(Stream::Stdout, Level::Info, "on");
    let tail = log.tail(2);
    assert_eq!(
        (tail[0].dropped, tail[1].msg.as_str()),
        (Some(1), "on"),
        "a line larger than a file is counted"
    );
}

#[test]
fn numbers_go_on_after_a_restart_and_a_half_line_is_forgotten() {
    let bench = Bench::new();
    let log = bench.open();
    log.line(Stream::Stdout, Level::Info, "one");
    log.line(Stream::Stdout, Level::Info, "two");
    drop(log);
    let path = bench.dir.path().join("current.log");
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let log = bench.open();
        log.line(Stream::Stdout, Level::Info, "three");
        let seen: Vec<_> = log.tail(9).into_iter().map(|line| (line.seq, line.msg)).collect();
        assert_eq!(seen, [(1, "one".into()), (2, "three".into())], "cut at {cut}");
    }
    assert_eq!(tail_of(bench.dir.path(), &limits(), 1)[0].msg, "three", "without a writer, too");
}

#[test]
fn lines_that_cannot_be_written_are_counted_and_told_later() {
    let bench = Bench::new();
    let log = bench.open();
    fs::remove_file(bench.dir.path().join("current.log")).unwrap();
    fs::create_dir(bench.dir.path().join("current.log")).unwrap();
    for _ in 0..3 {
        log.line(Stream::Stdout, Level::Info, "lost");
    }
    log.flush();
    log.flush();
    fs::remove_dir(bench.dir.path().join("current.log")).unwrap();
    log.line(Stream::Stdout, Level::Info, "found");
    let tail = log.tail(9);
    let seen: Vec<_> = tail.iter().map(|line| (line.msg.as_str(), line.dropped)).collect();
    assert_eq!(seen, [("3 lines were not written", Some(3)), ("found", None)]);
    assert_eq!(log.total_dropped(), 3);
}

#[tokio::test]
async fn followers_see_every_line_or_how_many_they_missed() {
    let bench = Bench::new();
    let log = bench.open();
    log.line(Stream::Stdout, Level::Info, "before");
    let mut follow = log.follow();
    let reader = tokio::spawn(async move {
        let first = follow.next().await;
        (follow, first)
    });
    log.line(Stream::Stdout, Level::Info, "first");
    let (mut follow, first) = reader.await.unwrap();
    assert!(matches!(&first, Followed::Line(line) if line.msg == "first" && line.seq == 2));
    for n in 0..300 {
        log.line(Stream::Stdout, Level::Info, &n.to_string());
    }
    assert_eq!(follow.next().await, Followed::Missed(44));
    assert!(matches!(follow.next().await, Followed::Line(line) if line.msg == "44"));
    for n in 45..300 {
        assert!(matches!(follow.next().await, Followed::Line(line) if line.msg == n.to_string()));
    }
    let long = "x".repeat(MAX_LINE_BYTES);
    for _ in 0..17 {
        log.line(Stream::Stdout, Level::Info, &long);
    }
    assert_eq!(follow.next().await, Followed::Missed(1), "bytes are bounded, too");
}

proptest::proptest! {
    #[test]
    fn any_bytes_become_lines_that_can_be_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let bench = Bench::new();
        let log = bench.open();
        log.bytes(ChildStream::Stderr, &bytes);
        log.ended();
        let said = bytes.split(|byte| *byte == b'\n').count() - usize::from(bytes.last().is_none_or(|byte| *byte == b'\n'));
        proptest::prop_assert_eq!(log.tail(1000).len(), said);
    }
}
