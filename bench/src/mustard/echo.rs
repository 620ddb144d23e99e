//! The floor of every conversation: a child that gets and gives frames of given sizes and has no engine.

use anyhow::{Result, ensure};

use super::child::{Child, Traffic};

/// What this program is started with to be an echo.
pub(crate) const ARGUMENT: &str = "__echo";

/// A request's header begins with the two lengths of the reply that is wanted, in so many hex digits each.
const DIGITS: usize = 8;

/// The child's end.
pub(crate) fn serve() -> Result<()> {
    let (input, output) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let mut buffer = vec![0; 1 << 20];
    let mut filled = 0;
    let mut reply = Vec::new();
    loop {
        let length = |at: usize| {
            u32::from_le_bytes([buffer[at], buffer[at + 1], buffer[at + 2], buffer[at + 3]]) as usize
        };
        let end = if filled < 8 { 8 } else { 8 + length(0) + length(4) };
        if filled < 8 || filled < end {
            if buffer.len() < end {
                buffer.resize(end, 0);
            }
            match rustix::io::read(input, &mut buffer[filled..])? {
                0 => return Ok(()),
                more => filled += more,
            }
            continue;
        }
        let wanted = |at: usize| -> Result<u32> {
            Ok(u32::from_str_radix(std::str::from_utf8(&buffer[at..at + DIGITS])?, 16)?)
        };
        let (header, blob) = (wanted(8)?, wanted(8 + DIGITS)?);
        reply.clear();
        reply.extend(header.to_le_bytes());
        reply.extend(blob.to_le_bytes());
        reply.resize(8 + header as usize + blob as usize, b' ');
        let mut rest = reply.as_slice();
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(output, rest)?..];
        }
        filled = 0;
    }
}

/// The driver's end: the same sizes again and again.
pub(super) struct Echo {
    child: Child,
    header: String,
    blob: Vec<u8>,
    traffic: Traffic,
}

impl Echo {
    pub(super) fn of(traffic: Traffic) -> Result<Self> {
        let mut header = format!("{:08x}{:08x}", traffic.got.header, traffic.got.blob);
        ensure!(header.len() <= traffic.sent.header, "no request is that short");
        header.push_str(&" ".repeat(traffic.sent.header - header.len()));
        Ok(Self { child: Child::echo()?, header, blob: vec![0; traffic.sent.blob], traffic })
    }

    pub(super) fn ask(&mut self) -> Result<()> {
        self.child.ask(&self.header, &self.blob)?;
        ensure!(self.child.traffic == self.traffic, "the echo is of another size");
        Ok(())
    }
}
