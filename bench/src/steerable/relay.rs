//! The least that can be done with streams: the same requests, and the bytes of the answers copied out without a look.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::server;
use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub(crate) const ARGUMENT: &str = "__steerable-relay";

/// For every line on standard input: makes `streams` requests at once to the server at `port` and copies the answers.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let [port, streams] = arguments else { anyhow::bail!("a port and a number of streams") };
    let (port, streams): (u16, u32) = (port.parse()?, streams.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut byte = [0];
    while std::io::stdin().read(&mut byte)? == 1 {
        if byte[0] == b'\n' {
            runtime.block_on(relay(port, streams))?;
            writeln!(std::io::stdout(), "\ndone")?;
        }
    }
    Ok(())
}

async fn relay(port: u16, streams: u32) -> Result<()> {
    let whole = server::answer().len();
    let mut copies = tokio::task::JoinSet::new();
    for _ in 0..streams {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("the server is there")?;
        stream.set_nonblocking(true)?;
        let mut stream = tokio::net::TcpStream::from_std(stream)?;
        copies.spawn(async move {
            stream
                .write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
                .await?;
            let mut buffer = vec![0; 64 << 10];
            let mut left = whole;
            loop {
                let length = stream.read(&mut buffer).await?;
                std::io::stdout().write_all(&buffer[..length])?;
                left = left.saturating_sub(length);
                if length == 0 || left == 0 {
                    return Ok::<_, anyhow::Error>(());
                }
            }
        });
    }
    while let Some(copied) = copies.join_next().await {
        copied??;
    }
    Ok(())
}
