//! The envelope of everything on disk: what it is and which version, outside of the payload; and a code over all of it,
//! bound to the name it is stored under, so that neither a change nor a swap goes unnoticed.

use hmac::Mac;

use super::StoreError;
use crate::host::key::HostKey;

const MAGIC: &[u8; 8] = b"outr-mst";
/// The version of the envelope and of the heads that we put into it.
const FORMAT: u16 = 1;
/// Magic, format, kind, length of the head.
const PREFIX: usize = 8 + 2 + 2 + 4;
const MAC_BYTES: usize = 32;

/// What is in the envelope. Part of the code, so that one cannot pose as the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    /// A parked run, named by its ticket.
    Ticket = 1,
    /// The last snapshot of a run, named by the run.
    Checkpoint = 2,
    /// An answer, named by run and call.
    Answer = 3,
    /// A run that is kept by somebody else, named by them.
    Kept = 4,
}

/// Puts a head and a body into an envelope.
pub(super) fn seal(key: &HostKey, kind: Kind, name: &str, head: &[u8], body: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(PREFIX + head.len() + body.len() + MAC_BYTES);
    sealed.extend_from_slice(MAGIC);
    sealed.extend_from_slice(&FORMAT.to_le_bytes());
    sealed.extend_from_slice(&(kind as u16).to_le_bytes());
    // Heads are a few kilobytes that we made ourselves; a body has no length of its own.
    sealed.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
    sealed.extend_from_slice(head);
    sealed.extend_from_slice(body);
    let code = code(key, &sealed, name).finalize().into_bytes();
    sealed.extend_from_slice(&code);
    sealed
}

/// Head and body, if this is what was sealed under this name with this key.
pub(super) fn open<'a>(
    key: &HostKey,
    kind: Kind,
    name: &str,
    sealed: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), StoreError> {
    let tampered = |why| StoreError::Tampered { name: name.to_owned(), why };
    let rest = sealed.strip_prefix(MAGIC).ok_or_else(|| tampered("it does not begin like one of ours"))?;
    let (format, _) = rest.split_first_chunk().ok_or_else(|| tampered("it is too short"))?;
    let found = u16::from_le_bytes(*format);
    if found != FORMAT {
        return Err(StoreError::Format { name: name.to_owned(), found, known: FORMAT });
    }
    let end = sealed.len().checked_sub(MAC_BYTES).filter(|end| *end >= PREFIX);
    let (covered, claimed) = sealed.split_at(end.ok_or_else(|| tampered("it is too short"))?);
    code(key, covered, name).verify_slice(claimed).map_err(|_| tampered("its code is wrong"))?;
    // From here on it is what we wrote; the checks below only keep a bug of ours from becoming a panic.
    let (prefix, rest) = covered.split_at(PREFIX);
    if prefix[10..12] != (kind as u16).to_le_bytes() {
        return Err(tampered("it is something else"));
    }
    let length = u32::from_le_bytes([prefix[12], prefix[13], prefix[14], prefix[15]]) as usize;
    rest.split_at_checked(length).ok_or_else(|| tampered("its head is longer than itself"))
}

fn code(key: &HostKey, covered: &[u8], name: &str) -> hmac::Hmac<sha2::Sha256> {
    let mut code = key.mac(covered);
    code.update(name.as_bytes());
    // The length keeps "covered, name" from being read with the border somewhere else.
    code.update(&(name.len() as u64).to_le_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_can_be_opened_and_nothing_else_can() {
        let key = HostKey::from_bytes([7; 32]);
        let sealed = seal(&key, Kind::Ticket, "name", b"head", b"body");
        assert_eq!(open(&key, Kind::Ticket, "name", &sealed).expect("ours"), (&b"head"[..], &b"body"[..]));

        for index in 0..sealed.len() {
            for bit in [1, 0x80] {
                let mut changed = sealed.clone();
                changed[index] ^= bit;
                open(&key, Kind::Ticket, "name", &changed).expect_err("a changed bit");
            }
            open(&key, Kind::Ticket, "name", &sealed[..index]).expect_err("cut");
        }
        open(&key, Kind::Ticket, "other", &sealed).expect_err("under another name");
        open(&key, Kind::Answer, "name", &sealed).expect_err("as another kind");
        open(&HostKey::from_bytes([8; 32]), Kind::Ticket, "name", &sealed).expect_err("with another key");
    }

    #[test]
    fn a_later_format_is_named_as_such() {
        let key = HostKey::from_bytes([7; 32]);
        let mut sealed = seal(&key, Kind::Ticket, "name", b"", b"");
        sealed[8] = 9;
        let error = open(&key, Kind::Ticket, "name", &sealed).expect_err("later");
        assert_eq!(error.to_string(), "name has format 9, and this program knows 1");
    }
}
