//! The envelope of a blob: what it is, which version, which engine, and whether it arrived whole.
//!
//! `magic (8) · format version (2) · engine fingerprint (8) · checksum of the payload (8) · payload`, all little-endian.
//! The version and the fingerprint stand outside the payload so that a blob of another engine is refused by name and
//! not by an obscure complaint about its content. The checksum finds accidents; it is no protection against malice.

use super::bytes::Writer;
use crate::heap::checksum;
use thiserror::Error;

/// The format of programs and snapshots. Any change of how they are spelled takes a new number.
pub const FORMAT: u16 = 2;

/// What a blob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Program,
    Snapshot,
    Image,
}

impl Kind {
    fn magic(self) -> [u8; 8] {
        match self {
            Kind::Program => *b"ORVMprog",
            Kind::Snapshot => *b"ORVMsnap",
            Kind::Image => *b"ORVMimag",
        }
    }
}

/// Why an envelope was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    /// It is something else.
    #[error("these bytes are not a blob of the kind that was asked for")]
    Kind,
    /// It was written in another format.
    #[error("format version mismatch: expected {expected}, got {found}")]
    Version {
        /// The version that this engine reads.
        expected: u16,
        /// The version of the blob.
        found: u16,
    },
    /// It was written by an engine with other built-ins or instructions.
    #[error("written by another engine: expected fingerprint {expected:016x}, got {found:016x}")]
    Engine {
        /// This engine.
        expected: u64,
        /// The engine that wrote the blob.
        found: u64,
    },
    /// It was cut or changed on the way.
    #[error("damaged: the checksum does not match")]
    Damaged,
}

const HEADER: usize = 26;

/// Puts a payload into its envelope.
pub(crate) fn seal(kind: Kind, fingerprint: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = header(kind, fingerprint, payload).to_vec();
    out.extend_from_slice(payload);
    out
}

/// A writer for a payload that will be sealed where it is: a large one is not moved.
pub(crate) fn open_envelope() -> Writer {
    let mut w = Writer::new();
    w.short(&[0; HEADER], HEADER);
    w
}

/// Closes what [`open_envelope`] opened. What was reserved and not used is given back: blobs are kept.
pub(crate) fn close_envelope(kind: Kind, fingerprint: u64, w: Writer) -> Vec<u8> {
    let mut out = w.finish();
    if let Some((place, payload)) = out.split_first_chunk_mut::<HEADER>() {
        *place = header(kind, fingerprint, payload);
    }
    out.shrink_to_fit();
    out
}

fn header(kind: Kind, fingerprint: u64, payload: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&kind.magic());
    header[8..10].copy_from_slice(&FORMAT.to_le_bytes());
    header[10..18].copy_from_slice(&fingerprint.to_le_bytes());
    header[18..].copy_from_slice(&checksum(payload).to_le_bytes());
    header
}

/// Takes a payload out of its envelope.
pub(crate) fn open(kind: Kind, fingerprint: u64, bytes: &[u8]) -> Result<&[u8], EnvelopeError> {
    let (found, sum, payload) = split(kind, bytes)?;
    if found != fingerprint {
        return Err(EnvelopeError::Engine { expected: fingerprint, found });
    }
    whole(sum, payload)
}

/// The same for an envelope that says itself of which engine it is.
pub(crate) fn open_any(kind: Kind, bytes: &[u8]) -> Result<(u64, &[u8]), EnvelopeError> {
    let (found, sum, payload) = split(kind, bytes)?;
    Ok((found, whole(sum, payload)?))
}

fn whole(sum: u64, payload: &[u8]) -> Result<&[u8], EnvelopeError> {
    if sum == checksum(payload) { Ok(payload) } else { Err(EnvelopeError::Damaged) }
}

/// Fingerprint, checksum and payload.
fn split(kind: Kind, bytes: &[u8]) -> Result<(u64, u64, &[u8]), EnvelopeError> {
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(EnvelopeError::Kind)?;
    if *magic != kind.magic() {
        return Err(EnvelopeError::Kind);
    }
    let (version, rest) = rest.split_first_chunk().ok_or(EnvelopeError::Damaged)?;
    let found = u16::from_le_bytes(*version);
    if found != FORMAT {
        return Err(EnvelopeError::Version { expected: FORMAT, found });
    }
    let (engine, rest) = rest.split_first_chunk().ok_or(EnvelopeError::Damaged)?;
    let (sum, payload) = rest.split_first_chunk().ok_or(EnvelopeError::Damaged)?;
    Ok((u64::from_le_bytes(*engine), u64::from_le_bytes(*sum), payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_says_what_is_wrong_with_it() {
        let sealed = seal(Kind::Snapshot, 7, b"payload");
        assert_eq!(open(Kind::Snapshot, 7, &sealed), Ok(&b"payload"[..]));
        let mut w = open_envelope();
        b"payload".iter().for_each(|&byte| w.byte(byte));
        assert_eq!(close_envelope(Kind::Snapshot, 7, w), sealed);
        assert_eq!(open(Kind::Program, 7, &sealed), Err(EnvelopeError::Kind));
        assert_eq!(open(Kind::Snapshot, 8, &sealed), Err(EnvelopeError::Engine { expected: 8, found: 7 }));
        let mut newer = sealed.clone();
        newer[8] = 9;
        assert_eq!(
            open(Kind::Snapshot, 7, &newer),
            Err(EnvelopeError::Version { expected: FORMAT, found: 9 })
        );
        for cut in 0..sealed.len() {
            assert!(open(Kind::Snapshot, 7, &sealed[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert!(open(Kind::Snapshot, 7, &bent).is_err(), "bent at {at}");
        }
    }
}
