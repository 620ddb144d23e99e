//! The tokio and the blocking line adapters give what the splitter gives, and their writers write whole lines.

use std::io::{self, Read};

use outrigger_wire::line::{
    BlockingLineReader, BlockingLineWriter, Item, LineReadError, LineReader, LineWriteError, LineWriter,
    dialect,
};
use tokio::io::AsyncWriteExt;

use crate::lines::{Seen, decode_chunks};

const STREAM: &[u8] = b"one\n\ntwo\r\n\xFF\nx0123456789abcdefghijklmnopqrstuvwxyz\nlast";

/// Gives a few bytes at a time and is interrupted in between, like a signal-happy pipe.
struct Dribble<'a> {
    rest: &'a [u8],
    interrupt: bool,
}

impl Read for Dribble<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.interrupt = !self.interrupt;
        if self.interrupt {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = self.rest.len().min(3).min(into.len());
        into[..n].copy_from_slice(&self.rest[..n]);
        self.rest = &self.rest[n..];
        Ok(n)
    }
}

#[test]
fn a_blocking_reader_gives_what_the_splitter_gives() {
    let policy = dialect::logs(20);
    let mut reader = BlockingLineReader::new(Dribble { rest: STREAM, interrupt: false }, policy);
    let mut seen = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        seen.push(Seen::from(item));
    }
    assert_eq!(seen, decode_chunks(policy, std::iter::once(STREAM)));
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
}

#[tokio::test]
async fn a_tokio_reader_gives_what_the_splitter_gives() {
    let policy = dialect::logs(20);
    let (mut writer, reader) = tokio::io::duplex(5);
    let feeder = tokio::spawn(async move { writer.write_all(STREAM).await });
    let mut reader = LineReader::new(reader, policy);
    let mut seen = Vec::new();
    while let Some(item) = reader.next().await.unwrap() {
        seen.push(Seen::from(item));
    }
    feeder.await.unwrap().unwrap();
    assert_eq!(seen, decode_chunks(policy, std::iter::once(STREAM)));
}

#[tokio::test]
async fn a_reader_that_is_cancelled_loses_nothing() {
    let (mut writer, reader) = tokio::io::duplex(64);
    let mut reader = LineReader::new(reader, dialect::STEERABLE);
    writer.write_all(b"{\"half\":").await.unwrap();
    tokio::select! {
        biased;
        item = reader.next() => panic!("no line yet, but got {item:?}"),
        () = tokio::task::yield_now() => {}
    }
    writer.write_all(b"1}\n").await.unwrap();
    let Some(Item::Line(line)) = reader.next().await.unwrap() else { panic!("a line") };
    assert_eq!(line.text(), Ok("{\"half\":1}"));
}

#[tokio::test]
async fn lines_that_arrived_together_can_be_taken_without_waiting() {
    let (mut writer, reader) = tokio::io::duplex(64);
    let mut reader = LineReader::new(reader, dialect::STEERABLE);
    writer.write_all(b"1\n2\n3").await.unwrap();
    assert!(matches!(reader.next().await, Ok(Some(Item::Line(line))) if line.bytes() == b"1"));
    assert!(matches!(reader.next_buffered(), Ok(Some(Item::Line(line))) if line.bytes() == b"2"));
    assert!(matches!(reader.next_buffered(), Ok(None)));
    drop(writer);
    assert!(matches!(reader.next().await, Ok(Some(Item::Line(line))) if line.bytes() == b"3"));
}

#[test]
fn a_stream_that_fails_is_an_io_error_and_not_an_end() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let mut reader = BlockingLineReader::new(Broken, dialect::MUSTARD);
    let Err(LineReadError::Io(error)) = reader.next() else { panic!("an I/O error") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn writers_write_whole_lines_and_refuse_what_would_break_the_frame() {
    let mut blocking = BlockingLineWriter::new(Vec::new(), 8);
    let mut asynchronous = LineWriter::new(Vec::new(), 8);
    for line in [&b"a"[..], b"", b"12345678"] {
        blocking.write(line).unwrap();
        asynchronous.write(line).await.unwrap();
    }
    for error in [blocking.write(b"a\nb").unwrap_err(), asynchronous.write(b"a\nb").await.unwrap_err()] {
        assert!(matches!(error, LineWriteError::Newline { at: 1, .. }), "{error}");
    }
    for error in
        [blocking.write(b"123456789").unwrap_err(), asynchronous.write(b"123456789").await.unwrap_err()]
    {
        assert!(matches!(error, LineWriteError::TooLong { limit: 8, length: 9, .. }), "{error}");
    }
    assert_eq!(blocking.into_inner(), b"a\n\n12345678\n");
    assert_eq!(asynchronous.into_inner(), b"a\n\n12345678\n");
}
