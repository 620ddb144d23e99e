//! The secret of a host: what snapshots are vouched for with, towards sidecars and on disk. It never leaves the host but for
//! the sidecar that has to check a token, as the protocol wants it.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A host's secret. Two hosts with the same key accept each other's snapshots; give the same one again to go on after a
/// restart.
#[derive(Clone)]
pub struct HostKey {
    bytes: [u8; HostKey::BYTES],
    /// What goes along with every resume, made once.
    base64: Arc<str>,
    digest: Arc<str>,
}

impl HostKey {
    /// How long a key is.
    pub const BYTES: usize = 32;

    /// A key that nobody else has.
    ///
    /// # Errors
    ///
    /// When the system has no randomness to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; Self::BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self::from_bytes(bytes))
    }

    /// A key that was kept from an earlier life.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let (base64, digest) = (STANDARD.encode(bytes).into(), id_of(&bytes).into());
        Self { bytes, base64, digest }
    }

    /// The key itself, to be kept where only this host can read it.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.bytes
    }

    /// `snapshot_key_base64` of the protocol.
    pub(super) fn base64(&self) -> &str {
        &self.base64
    }

    /// `snapshot_key_digest` of the protocol.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// `snapshot_token` of the protocol.
    pub(super) fn token(&self, snapshot_id: &str) -> String {
        hex(&self.mac(snapshot_id.as_bytes()).finalize().into_bytes())
    }

    /// A message authentication code that can be finished or checked in constant time.
    pub(super) fn mac(&self, message: &[u8]) -> Hmac<Sha256> {
        // HMAC pads a short key with zeros to its block of 64 bytes; doing so here leaves nothing that could fail.
        let mut block = [0; 64];
        block[..Self::BYTES].copy_from_slice(&self.bytes);
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
        mac.update(message);
        mac
    }
}

/// Never shows the secret.
impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKey(…)")
    }
}

/// The id that the protocol gives to bytes: lower-case hex of their SHA-256.
pub(super) fn id_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_what_any_other_hmac_says() {
        // python3 -c "import hmac,hashlib; print(hmac.new(bytes(range(32)), b'abc', hashlib.sha256).hexdigest())"
        let key = HostKey::from_bytes(std::array::from_fn(|index| u8::try_from(index).expect("small")));
        assert_eq!(key.token("abc"), "f0133729c4163dede81e21cd47839256da58171238c8a0d874397c73b14e1e47");
        assert_eq!(key.digest(), "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd");
        assert_eq!(id_of(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(format!("{key:?}"), "HostKey(…)");
    }
}
