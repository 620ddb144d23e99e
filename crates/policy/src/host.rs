//! Hosts by name: the many spellings of one host become one, before any rule looks at it.

use crate::glob::{Glob, GlobError, Reading};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt;

/// The longest host name, in bytes, without port and trailing dot.
pub const MAX_HOST_BYTES: usize = 253;

/// A host in its one spelling, with the port when one was given.
///
/// ASCII letters are lower case, a trailing dot is gone, IPv6 is compressed and without brackets, IPv4 is four
/// decimal numbers however it was written (`0x7f.1`, `2130706433`), and an IPv6 address that only wraps an IPv4
/// address is that IPv4 address. Names beyond ASCII are left as they are: bring the form that will be resolved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// Why a text names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// There is no name.
    #[error("the host is empty")]
    Empty,
    /// Longer than [`MAX_HOST_BYTES`].
    #[error("the host has {length} bytes; the limit is {MAX_HOST_BYTES}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A character that is in no host, or that another program would read as the end of it.
    #[error("{found:?} may not be in a host")]
    Forbidden {
        /// The character.
        found: char,
    },
    /// Two dots in a row, or a dot at the beginning.
    #[error("the host has an empty label")]
    EmptyLabel,
    /// It looks like an IP address and is none.
    #[error("the host looks like an IP address and is none")]
    BadAddress,
    /// What follows the colon is no port.
    #[error("the port is not a number from 0 to 65535")]
    BadPort,
}

impl Host {
    /// Reads a host with or without a port: `Example.org.`, `example.org:443`, `[::1]:80`, `::1`.
    pub fn parse(text: &str) -> Result<Host, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or(HostError::BadAddress)?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(parse_port(port)?),
                None if rest.is_empty() => None,
                None => return Err(HostError::BadPort),
            };
            let address: Ipv6Addr = address.parse().map_err(|_| HostError::BadAddress)?;
            return Ok(Host { name: spell(address), port });
        }
        match text.split_once(':') {
            // More than one colon: an IPv6 address without brackets, which leaves no room for a port.
            Some((_, rest)) if rest.contains(':') => {
                let address: Ipv6Addr = text.parse().map_err(|_| HostError::BadAddress)?;
                Ok(Host { name: spell(address), port: None })
            }
            Some((name, port)) => Ok(Host { name: parse_name(name)?, port: Some(parse_port(port)?) }),
            None => Ok(Host { name: parse_name(text)?, port: None }),
        }
    }

    /// The name or address, without brackets and port.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port, when one was given.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.name.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}", self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A pattern for hosts: a host, or a name glob such as `*.example.org` (which is every host below, at any depth,
/// and not `example.org` itself), with a port or without one.
#[derive(Clone, Debug)]
pub struct HostPattern {
    written: String,
    name: Glob,
    port: Option<u16>,
}

/// What a rule makes of a pattern with a port when the port of the host is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPort {
    /// It may be that port: right for a rule that denies.
    Matches,
    /// It may be another port: right for a rule that allows.
    Differs,
}

impl HostPattern {
    /// Compiles a pattern, whose spelling is evened out as that of a host.
    pub fn new(pattern: &str) -> Result<HostPattern, GlobError> {
        let written = pattern.to_owned();
        if let Ok(Host { name, port }) = Host::parse(pattern) {
            // What parses as a host has no wildcard; an address with brackets would be read as a class.
            let name = Glob::literal(&name);
            return Ok(HostPattern { written, name, port });
        }
        let (name, port) = match pattern.rsplit_once(':') {
            Some((name, port)) => (name, parse_port(port).ok()),
            None => (pattern, None),
        };
        let name = if port.is_some() { name } else { pattern };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        Ok(HostPattern { written, name: Glob::new(&name, Reading::Name)?, port })
    }

    /// Whether the pattern covers `host`.
    #[must_use]
    pub fn matches(&self, host: &Host, unknown: UnknownPort) -> bool {
        let port = match (self.port, host.port) {
            (None, _) => true,
            (Some(wanted), Some(port)) => wanted == port,
            (Some(_), None) => unknown == UnknownPort::Matches,
        };
        port && self.name.matches(&host.name)
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.written
    }
}

fn parse_name(text: &str) -> Result<String, HostError> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if name.len() > MAX_HOST_BYTES {
        return Err(HostError::TooLong { length: name.len() });
    }
    if let Some(found) = name.chars().find(|c| is_forbidden(*c)) {
        return Err(HostError::Forbidden { found });
    }
    if name.split('.').any(str::is_empty) {
        return Err(HostError::EmptyLabel);
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    if is_number(last) {
        // A name cannot end in a number, so every resolver would take this for an address.
        return parse_ipv4(name).map(|address| address.to_string()).ok_or(HostError::BadAddress);
    }
    Ok(name.to_ascii_lowercase())
}

fn is_forbidden(c: char) -> bool {
    // The last three are dots to those who map names to ASCII. Wildcards are in patterns, not in hosts.
    c.is_control()
        || c.is_whitespace()
        || "/\\@?#%<>^|[]{}*,\"'`".contains(c)
        || matches!(c, '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
}

fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => label.bytes().all(|b| b.is_ascii_digit()),
    }
}

/// IPv4 as browsers and the C library read it: one to four numbers, decimal, octal or hexadecimal, of which the
/// last fills all bytes that are left.
fn parse_ipv4(name: &str) -> Option<Ipv4Addr> {
    let numbers: Vec<u64> = name.split('.').map(parse_number).collect::<Option<_>>()?;
    let (last, leading) = numbers.split_last()?;
    if leading.len() > 3 || leading.iter().any(|number| *number > 255) {
        return None;
    }
    let free_bits = 32 - 8 * u32::try_from(leading.len()).ok()?;
    if last >> free_bits != 0 {
        return None;
    }
    let high = leading.iter().fold(0u64, |high, number| high << 8 | number);
    let address = high << free_bits | last;
    u32::try_from(address).ok().map(Ipv4Addr::from)
}

fn parse_number(label: &str) -> Option<u64> {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    let (digits, radix) = match hex {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if label.len() > 1 && label.starts_with('0') => (&label[1..], 8),
        None => (label, 10),
    };
    // `from_str_radix` would take a sign.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn parse_port(text: &str) -> Result<u16, HostError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return Err(HostError::BadPort);
    }
    text.parse().map_err(|_| HostError::BadPort)
}

fn spell(address: Ipv6Addr) -> String {
    match address.to_ipv4_mapped() {
        Some(address) => address.to_string(),
        None => address.to_string(),
    }
}
