//! Ids, keys and tokens: which program, which snapshot, which policy, and who may resume it.
//!
//! An id is the SHA-256 of what it names. A token is an HMAC-SHA256 of a snapshot's id in hex, under a key that the host
//! chose; the sidecar never keeps a key.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// A SHA-256, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The digest that is written so: exactly 64 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Digest> {
        unhex(text).map(Digest)
    }

    /// The 64 hex digits.
    #[must_use]
    pub fn hex(&self) -> Hex {
        Hex::new(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hex().as_str())
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Digest);

        impl $name {
            /// The id that is written so, if it can be one at all.
            #[must_use]
            pub fn parse(text: &str) -> Option<$name> {
                Digest::parse(text).map($name)
            }

            /// The 64 hex digits.
            #[must_use]
            pub fn hex(&self) -> Hex {
                self.0.hex()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// Names a compiled program: the digest of its bytes.
    ProgramId
);
id!(
    /// Names a snapshot: the digest of its bytes.
    SnapshotId
);
id!(
    /// Names a policy: the digest of its capabilities and limits as they were sent.
    PolicyId
);

impl ProgramId {
    /// The id of these bytes.
    #[must_use]
    pub fn of(program: &[u8]) -> ProgramId {
        ProgramId(Digest::of(program))
    }
}

impl SnapshotId {
    /// The id of these bytes.
    #[must_use]
    pub fn of(snapshot: &[u8]) -> SnapshotId {
        SnapshotId(Digest::of(snapshot))
    }
}

/// A key that a host signs snapshots with. Any bytes will do, even none.
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotKey(Vec<u8>);

impl SnapshotKey {
    /// A key of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> SnapshotKey {
        SnapshotKey(bytes)
    }

    /// A key of 32 bytes that nobody can guess.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn random() -> Result<SnapshotKey, getrandom::Error> {
        let mut bytes = vec![0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(SnapshotKey(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What goes along as `snapshot_key_digest`.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }

    /// The token for a snapshot.
    #[must_use]
    pub fn token(&self, snapshot: SnapshotId) -> Token {
        // A key of any length is a key: this cannot fail.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return Token([0; 32]) };
        mac.update(snapshot.hex().as_str().as_bytes());
        Token(mac.finalize().into_bytes().into())
    }

    /// Whether `token`, as it came over the wire, is the one for this snapshot. Takes the same time wherever it is wrong.
    #[must_use]
    pub fn admits(&self, snapshot: SnapshotId, token: &str) -> bool {
        let expected = self.token(snapshot).hex();
        expected.as_str().as_bytes().ct_eq(token.as_bytes()).into()
    }
}

impl fmt::Debug for SnapshotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SnapshotKey({} bytes)", self.0.len())
    }
}

/// What a host sends to prove that it may resume a snapshot.
#[derive(Clone, Copy)]
pub struct Token([u8; 32]);

impl Token {
    /// The 64 hex digits.
    #[must_use]
    pub fn hex(&self) -> Hex {
        Hex::new(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// 64 lower-case hex digits.
#[derive(Clone, Copy)]
pub struct Hex([u8; 64]);

impl Hex {
    fn new(bytes: &[u8; 32]) -> Hex {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            let hex = |n: u8| b"0123456789abcdef"[usize::from(n & 15)];
            pair.copy_from_slice(&[hex(byte >> 4), hex(*byte)]);
        }
        Hex(digits)
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Hex digits are always text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_tokens_are_what_any_other_program_computes() {
        let id = SnapshotId::of(b"abc");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(id.to_string(), abc);
        assert_eq!(SnapshotId::parse(abc), Some(id));
        assert_eq!(SnapshotId::parse(&abc.to_uppercase()), None);
        assert_eq!(SnapshotId::parse(&abc[1..]), None);
        // printf %s "$abc" | openssl dgst -sha256 -hmac key
        let key = SnapshotKey::new(b"key".to_vec());
        let token = key.token(id).hex();
        assert_eq!(token.as_str(), "7ec04a5084fa98a7a0af4518e5f46e6ce8eabce44f09305b520e338dc2cb2c9f");
    }

    #[test]
    fn a_token_admits_one_snapshot_under_one_key_in_one_spelling() {
        let key = SnapshotKey::new(b"key".to_vec());
        let (one, other) = (SnapshotId::of(b"one"), SnapshotId::of(b"other"));
        let token = key.token(one).hex();
        assert!(key.admits(one, token.as_str()));
        assert!(!key.admits(other, token.as_str()));
        assert!(!SnapshotKey::new(b"kez".to_vec()).admits(one, token.as_str()));
        assert!(!key.admits(one, &token.as_str().to_uppercase()));
        assert!(!key.admits(one, &token.as_str()[1..]));
        assert!(!key.admits(one, ""));
        let empty = SnapshotKey::new(Vec::new());
        assert!(empty.admits(one, empty.token(one).hex().as_str()), "the empty key is a key");
    }
}
