//! The one line on standard input from which an extension learns where its host is.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::Deserialize;

/// The longest bootstrap line, in bytes. A path has at most a hundred of them.
const MAX_LINE: u64 = 4096;

/// What the host says before anything else.
#[derive(Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// Where the channel is.
    pub endpoint: Endpoint,
    /// Proves that this is the process that the host started. Works once.
    pub token: String,
    /// Which session this is.
    pub session: String,
}

/// Where the channel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket to connect to.
    Unix(PathBuf),
    /// A socket that the process was born with.
    Fd(i32),
    /// A port on the loopback interface.
    Tcp(SocketAddrV4),
}

/// Why there is no bootstrap.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// Standard input ended or failed first.
    #[error("the host said nothing on standard input")]
    Silent,
    /// Standard input cannot be read.
    #[error("failed to read the bootstrap line from standard input: {0}")]
    Read(#[from] io::Error),
    /// The line is not what it should be. It has the token, so it is not shown.
    #[error("the bootstrap line is not right: {0}")]
    Bad(String),
}

impl Bootstrap {
    /// Reads the line, and nothing after it.
    pub fn read(input: &mut impl BufRead) -> Result<Self, BootstrapError> {
        let mut line = Vec::new();
        input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        match line.pop() {
            None => Err(BootstrapError::Silent),
            Some(b'\n') => Self::parse(&line),
            Some(_) => Err(BootstrapError::Bad(format!("it has no end within {MAX_LINE} bytes"))),
        }
    }

    /// Takes the line apart.
    pub fn parse(line: &[u8]) -> Result<Self, BootstrapError> {
        #[derive(Deserialize)]
        struct Line {
            sep: u64,
            endpoint: String,
            token: String,
            session: String,
        }
        let bad = |why: String| BootstrapError::Bad(why);
        // Only the place is told: the words of the parser could quote the token.
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            bad(format!("it is not the expected JSON object (at byte {})", error.column()))
        })?;
        if line.sep != 1 {
            return Err(bad(format!("its format is {}, this kit knows 1", line.sep)));
        }
        Ok(Self { endpoint: Endpoint::parse(&line.endpoint)?, token: line.token, session: line.session })
    }
}

impl Endpoint {
    /// Reads `unix:PATH`, `fd:N` or `tcp:127.0.0.1:PORT`.
    pub fn parse(text: &str) -> Result<Self, BootstrapError> {
        let bad = || BootstrapError::Bad(format!("`{}` is no endpoint", text.escape_debug()));
        match text.split_once(':').ok_or_else(bad)? {
            ("unix", path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            ("fd", number) => number.parse().ok().filter(|number| *number > 2).map(Self::Fd).ok_or_else(bad),
            ("tcp", address) => {
                let address: SocketAddrV4 = address.parse().map_err(|_| bad())?;
                if *address.ip() == Ipv4Addr::LOCALHOST { Ok(Self::Tcp(address)) } else { Err(bad()) }
            }
            _ => Err(bad()),
        }
    }
}

/// The token stays out of every log.
impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap")
            .field("endpoint", &self.endpoint)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Bootstrap, String> {
        Bootstrap::read(&mut io::BufReader::new(bytes)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_line_is_read_and_what_follows_is_left() {
        let mut input = io::BufReader::new(
            &b"{\"sep\":1,\"endpoint\":\"unix:/s\",\"token\":\"t\",\"session\":\"x\",\"new\":0}\nrest"[..],
        );
        let read = Bootstrap::read(&mut input).expect("a right line");
        let endpoint = Endpoint::Unix("/s".into());
        assert_eq!(read, Bootstrap { endpoint, token: "t".into(), session: "x".into() });
        let mut rest = String::new();
        input.read_to_string(&mut rest).expect("bytes");
        assert_eq!(rest, "rest");
    }

    #[test]
    fn wrong_lines_are_explained_without_the_token() {
        for line in [
            "",
            "\n",
            "{}\n",
            "[1]\n",
            "{\"sep\":1",
            "{\"sep\":2,\"endpoint\":\"fd:3\",\"token\":\"SECRET\",\"session\":\"\"}\n",
        ] {
            let error = read(line.as_bytes()).expect_err(line);
            assert!(!error.contains("SECRET"), "{error}");
        }
        let long = format!("{{\"sep\":1,\"endpoint\":\"{}\"", "x".repeat(5000));
        assert!(read(long.as_bytes()).expect_err("too long").contains("4096"));
        let leak =
            read(b"{\"sep\":1,\"endpoint\":3,\"token\":\"SECRET\"}\n").expect_err("a number is no endpoint");
        assert!(!leak.contains("SECRET"), "{leak}");
    }

    #[test]
    fn endpoints_are_local() {
        assert_eq!(Endpoint::parse("fd:3").ok(), Some(Endpoint::Fd(3)));
        assert!(matches!(Endpoint::parse("tcp:127.0.0.1:80"), Ok(Endpoint::Tcp(_))));
        for wrong in [
            "",
            "unix:relative",
            "fd:2",
            "fd:-1",
            "fd:x",
            "tcp:localhost:80",
            "tcp:10.0.0.1:80",
            "pipe:x",
            "unix",
        ] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }
}
