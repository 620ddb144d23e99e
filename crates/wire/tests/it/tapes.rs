//! Tapes: what they hold, how they end, and what the replay notices.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use outrigger_wire::line::{BlockingLineReader, BlockingLineWriter, dialect};
use outrigger_wire::tape::{
    Direction, Entry, Listener, Said, Tape, TapeSize, TapeSummary, every_split, read_tape, stream,
};

#[derive(Clone, Default)]
struct Reel(Arc<Mutex<Vec<u8>>>);

impl Reel {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Reel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn line_adapters_can_be_taped() {
    let reel = Reel::default();
    let tape = Tape::new(reel.clone(), TapeSize(1 << 16));
    let mut reader = BlockingLineReader::new(&b"one\n\xFF\nlast"[..], dialect::HELMOR).taped(tape.clone());
    while reader.next().unwrap().is_some() {}
    let mut writer = BlockingLineWriter::new(Vec::new(), 100).taped(tape.clone());
    writer.write(b"out").unwrap();
    writer.write(b"a\nb").unwrap_err();
    assert_eq!(tape.summary(), TapeSummary { entries: 4, missed: 0 });
    let entries = read_tape(&reel.text()).unwrap();
    let said: Vec<_> = entries.iter().map(|entry| (entry.dir, entry.said.clone())).collect();
    assert_eq!(
        said,
        [
            (Direction::In, Said::Line("one".into())),
            (Direction::In, Said::Bytes(b"\xFF\n".to_vec())),
            (Direction::In, Said::Line("last".into())),
            (Direction::Out, Said::Line("out".into())),
        ]
    );
    assert_eq!(stream(&entries, Direction::In), b"one\n\xFF\nlast\n");
    assert!(entries.windows(2).all(|pair| pair[0].t_us <= pair[1].t_us));
}

#[test]
fn one_tape_can_hold_several_conversations() {
    let reel = Reel::default();
    let tape = Tape::new(reel.clone(), TapeSize(1 << 16));
    tape.line(Direction::In, b"host");
    tape.with("claude:s1").line(Direction::Out, b"agent");
    tape.with("claude:s1").bytes(Direction::Out, b"\xFF");
    let entries = read_tape(&reel.text()).unwrap();
    let with: Vec<_> = entries.iter().map(|entry| entry.with.as_deref()).collect();
    assert_eq!(with, [None, Some("claude:s1"), Some("claude:s1")]);
    assert!(reel.text().starts_with("{\"dir\":\"in\",\"t_us\":"), "an entry of the only one is as ever");
    assert!(!reel.text().lines().next().unwrap().contains("with"));
}

#[test]
fn a_tape_never_outgrows_its_size_and_says_that_it_is_full() {
    for size in [0, 13, 14, 100, 150, 1000] {
        let reel = Reel::default();
        let tape = Tape::new(reel.clone(), TapeSize(size));
        for _ in 0..100 {
            tape.line(Direction::In, b"some line");
        }
        let summary = tape.summary();
        let text = reel.text();
        assert_eq!(summary.entries + summary.missed, 100);
        assert!(text.len() as u64 <= size.max(14), "{} of {size}", text.len());
        assert!(text.ends_with("{\"full\":true}\n"));
        assert_eq!(read_tape(&text).unwrap().len() as u64, summary.entries);
    }
}

#[test]
fn a_broken_file_stops_the_tape_and_not_the_conversation() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let tape = Tape::new(Broken, TapeSize(1000));
    tape.line(Direction::In, b"a");
    tape.bytes(Direction::Out, b"b");
    assert_eq!(tape.summary(), TapeSummary { entries: 0, missed: 2 });
}

#[test]
fn what_is_not_a_tape_is_refused_with_the_line() {
    for (text, message) in [
        ("{", "line 1 of the tape is not an entry: EOF while parsing an object at line 1 column 1"),
        (
            "{\"dir\":\"in\",\"t_us\":1,\"line\":\"\"}\n{}",
            "line 2 of the tape is not an entry: `dir` or `t_us` is missing",
        ),
        ("{\"dir\":\"in\",\"t_us\":1}", "line 1 of the tape is not an entry: needs either `line` or `bytes`"),
        ("{\"dir\":\"in\",\"t_us\":1,\"bytes\":\"?\"}", "line 1 of the tape is not an entry: bad base64"),
    ] {
        assert_eq!(read_tape(text).unwrap_err().to_string(), message);
    }
    let entry = Entry { dir: Direction::Out, t_us: 7, with: None, said: Said::Line("x".into()) };
    assert_eq!(read_tape("{\"dir\":\"out\",\"t_us\":7,\"line\":\"x\"}\n").unwrap(), [entry]);
}

#[test]
fn the_replay_notices_a_decoder_that_cares_about_cuts() {
    // Counts pushes instead of lines: the very mistake the replay is for.
    let error = every_split(b"ab", |chunks| chunks.count()).unwrap_err();
    assert_eq!(error.to_string(), "cut into single bytes, the stream decodes to 2, but in one piece to 1");
    assert_eq!(every_split(b"ab", |chunks| chunks.map(<[u8]>::len).sum::<usize>()).unwrap(), 2);
}

#[test]
fn a_conversation_can_be_heard_instead_of_taped() {
    struct Ear(Mutex<Vec<(Direction, Vec<u8>)>>);
    impl Listener for Ear {
        fn heard(&self, dir: Direction, line: &[u8]) {
            self.0.lock().unwrap().push((dir, line.to_vec()));
        }
    }
    let ear = Arc::new(Ear(Mutex::new(Vec::new())));
    let tape = Tape::heard_by(ear.clone());
    let mut reader = BlockingLineReader::new(&b"one\n\xFF\n"[..], dialect::HELMOR).taped(tape.clone());
    while reader.next().unwrap().is_some() {}
    tape.line(Direction::Out, b"out");
    let expected = [
        (Direction::In, b"one".to_vec()),
        (Direction::In, b"\xFF".to_vec()),
        (Direction::Out, b"out".to_vec()),
    ];
    assert_eq!(*ear.0.lock().unwrap(), expected);
    assert_eq!(tape.summary(), TapeSummary { entries: 0, missed: 0 });
}
