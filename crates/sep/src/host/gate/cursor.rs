//! Cursors that only this host can make: bound to the extension and to the filter, useless for anything else.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::mesh::{ContactQuery, MessageHash, MessageQuery, Position};
use crate::protocol::ExtensionId;

/// The longest cursor that is looked at.
pub(super) const MAX_CURSOR_BYTES: usize = 256;

const TAG_BYTES: usize = 16;

/// The secret that cursors are made with. Cursors do not outlive it; a new one for every start of the host is enough.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl CursorKey {
    /// A key of these random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    pub(super) fn of_messages(&self, extension: &ExtensionId, filter: &MessageQuery, at: Position) -> String {
        let mut place = Vec::with_capacity(40 + TAG_BYTES);
        place.extend_from_slice(&at.timestamp_ms.to_be_bytes());
        place.extend_from_slice(&at.hash.0);
        self.seal(&message_scope(extension, filter), place)
    }

    /// The place that a cursor stands for; none if it was not made for this.
    pub(super) fn read_messages(
        &self,
        extension: &ExtensionId,
        filter: &MessageQuery,
        cursor: &str,
    ) -> Option<Position> {
        let place: [u8; 40] = self.open(&message_scope(extension, filter), cursor)?.try_into().ok()?;
        let (time, hash) = place.split_first_chunk::<8>()?;
        Some(Position { timestamp_ms: u64::from_be_bytes(*time), hash: MessageHash(hash.try_into().ok()?) })
    }

    pub(super) fn of_contacts(&self, extension: &ExtensionId, filter: &ContactQuery, after: u64) -> String {
        self.seal(&contact_scope(extension, filter), after.to_be_bytes().to_vec())
    }

    /// The id that a cursor stands for; none if it was not made for this.
    pub(super) fn read_contacts(
        &self,
        extension: &ExtensionId,
        filter: &ContactQuery,
        cursor: &str,
    ) -> Option<u64> {
        let place = self.open(&contact_scope(extension, filter), cursor)?;
        Some(u64::from_be_bytes(place.try_into().ok()?))
    }

    fn seal(&self, scope: &str, mut place: Vec<u8>) -> String {
        let tag = self.mac(scope, &place).finalize().into_bytes();
        place.extend_from_slice(&tag[..TAG_BYTES]);
        URL_SAFE_NO_PAD.encode(place)
    }

    fn open(&self, scope: &str, cursor: &str) -> Option<Vec<u8>> {
        if cursor.len() > MAX_CURSOR_BYTES {
            return None;
        }
        let mut place = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let tag = place.split_off(place.len().checked_sub(TAG_BYTES)?);
        self.mac(scope, &place).verify_truncated_left(&tag).ok()?;
        Some(place)
    }

    fn mac(&self, scope: &str, place: &[u8]) -> Hmac<Sha256> {
        // A key of any length is a key.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        // The length keeps scope and place apart.
        mac.update(&(scope.len() as u64).to_be_bytes());
        mac.update(scope.as_bytes());
        mac.update(place);
        mac
    }
}

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey(…)")
    }
}

/// The limit is no part of it: the next page may be larger.
fn message_scope(extension: &ExtensionId, filter: &MessageQuery) -> String {
    let MessageQuery { peer, direction, since_ms, until_ms, after: _, limit: _ } = filter;
    format!("messages\n{extension}\n{peer:?}\n{direction:?}\n{since_ms:?}\n{until_ms:?}")
}

fn contact_scope(extension: &ExtensionId, filter: &ContactQuery) -> String {
    let ContactQuery { text, after: _, limit: _ } = filter;
    format!("contacts\n{extension}\n{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Address, Direction};

    fn id(text: &str) -> ExtensionId {
        ExtensionId::new(text).expect("an id")
    }

    fn filter() -> MessageQuery {
        MessageQuery { peer: None, direction: None, since_ms: None, until_ms: None, after: None, limit: 50 }
    }

    #[test]
    fn a_cursor_works_for_the_extension_and_the_filter_it_was_made_for_and_for_nothing_else() {
        let key = CursorKey::new([7; 32]);
        let at = Position { timestamp_ms: 1_700_000_000_123, hash: MessageHash([9; 32]) };
        let cursor = key.of_messages(&id("org.a"), &filter(), at);
        assert!(cursor.len() <= MAX_CURSOR_BYTES);
        assert_eq!(key.read_messages(&id("org.a"), &filter(), &cursor), Some(at));
        let larger = MessageQuery { limit: 200, ..filter() };
        assert_eq!(key.read_messages(&id("org.a"), &larger, &cursor), Some(at), "another page size is fine");

        assert_eq!(key.read_messages(&id("org.b"), &filter(), &cursor), None);
        for other in [
            MessageQuery { peer: Some(Address([0; 16])), ..filter() },
            MessageQuery { direction: Some(Direction::Incoming), ..filter() },
            MessageQuery { since_ms: Some(0), ..filter() },
            MessageQuery { until_ms: Some(0), ..filter() },
        ] {
            assert_eq!(key.read_messages(&id("org.a"), &other, &cursor), None, "{other:?}");
        }
        assert_eq!(CursorKey::new([8; 32]).read_messages(&id("org.a"), &filter(), &cursor), None);
        let contacts = ContactQuery { text: None, after: None, limit: 1 };
        assert_eq!(key.read_contacts(&id("org.a"), &contacts, &cursor), None);
    }

    #[test]
    fn no_change_of_a_cursor_goes_unnoticed() {
        let key = CursorKey::new([7; 32]);
        let contacts = ContactQuery { text: Some("x".into()), after: None, limit: 1 };
        let cursor = key.of_contacts(&id("org.a"), &contacts, 41);
        assert_eq!(key.read_contacts(&id("org.a"), &contacts, &cursor), Some(41));
        for at in 0..cursor.len() {
            let mut forged = cursor.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).expect("ASCII");
            assert_eq!(key.read_contacts(&id("org.a"), &contacts, &forged), None, "byte {at}");
            assert_eq!(key.read_contacts(&id("org.a"), &contacts, &cursor[..at]), None, "cut at {at}");
        }
        for wrong in ["", "=", "é", &"A".repeat(257)] {
            assert_eq!(key.read_contacts(&id("org.a"), &contacts, wrong), None);
        }
    }
}
