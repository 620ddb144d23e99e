//! A model's server that has its answers ready: one HTTP chunk a token, written as fast as the socket takes them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use anyhow::{Context, Result};

pub(crate) const ARGUMENT: &str = "__steerable-model";

/// Chunks of a stream.
pub(super) const CHUNKS: u32 = 5_000;

/// Prints its port and serves until its standard input ends.
pub(crate) fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let answer: Arc<[u8]> = answer().into();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // A caller that hangs up is its own affair.
            std::thread::spawn(move || drop(converse(&stream, &answer)));
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Answers every request of a connection.
fn converse(stream: &TcpStream, answer: &[u8]) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if let Some(value) = text.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().context("a length")?;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        (&*stream).write_all(answer)?;
    }
}

/// An answer, from its head to its last chunk.
pub(super) fn answer() -> Vec<u8> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let mut chunk = |data: &str| {
        let event = format!("data: {data}\n\n");
        bytes.extend(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
    };
    for number in 0..CHUNKS {
        chunk(&format!(
            r#"{{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{{"index":0,"delta":{{"content":"{number:06} "}},"finish_reason":null}}]}}"#
        ));
    }
    chunk(
        r#"{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    );
    chunk("[DONE]");
    bytes.extend(b"0\r\n\r\n");
    bytes
}
