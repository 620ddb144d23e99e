//! The key that signs receipts: a file with 64 hexadecimal digits that only its owner can read.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signer, Verifier};
use outrigger_policy::Digest;

use super::head::{Signature, hex};

/// The only algorithm.
const ALGORITHM: &str = "ed25519";

/// Signs receipts.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("the key {} cannot be {what}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Read or made.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Others can read it.
    #[error("the key {} can be read by others (mode {mode:o}); make it 600", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is not a key.
    #[error("the key {} is not 64 hexadecimal digits", path.display())]
    NotAKey {
        /// Which file.
        path: PathBuf,
    },
    /// The system has no randomness to give.
    #[error("there is no randomness for a new key: {0}")]
    NoRandomness(getrandom::Error),
}

impl SigningKey {
    /// Reads a key from its file.
    ///
    /// # Errors
    /// When it cannot be read, others can read it, or it is not a key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), what: "read", source };
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(128).read_to_string(&mut text).map_err(failed)?;
        let seed = unhex::<32>(text.trim()).ok_or_else(|| KeyError::NotAKey { path: path.to_owned() })?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// Makes a new key in a file that is not there yet.
    ///
    /// # Errors
    /// When the file is there or cannot be made.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(KeyError::NoRandomness)?;
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(format!("{}\n", hex(&seed)).as_bytes())?;
            file.sync_all()
        })();
        written.map_err(|source| KeyError::Io { path: path.to_owned(), what: "made", source })?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// The public half, in hexadecimal digits.
    #[must_use]
    pub fn public_key(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    pub(super) fn sign(&self, sha256: &Digest) -> Signature {
        Signature {
            algorithm: ALGORITHM.to_owned(),
            public_key: self.public_key(),
            value: hex(&self.0.sign(&signed_text(sha256)).to_bytes()),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public_key())
    }
}

/// Whether a signature is one for this hash, and if not, why.
pub(super) fn check(signature: &Signature, sha256: &Digest) -> Result<(), &'static str> {
    if signature.algorithm != ALGORITHM {
        return Err("the algorithm is not ed25519");
    }
    let public = unhex::<32>(&signature.public_key).ok_or("the public key is not 64 hexadecimal digits")?;
    let value = unhex::<64>(&signature.value).ok_or("the value is not 128 hexadecimal digits")?;
    let key = ed25519_dalek::VerifyingKey::from_bytes(&public).map_err(|_| "the public key is none")?;
    let value = ed25519_dalek::Signature::from_bytes(&value);
    key.verify(&signed_text(sha256), &value).map_err(|_| "it was made with another key or for another hash")
}

fn signed_text(sha256: &Digest) -> Vec<u8> {
    format!("outrigger-receipt-v1\n{sha256}").into_bytes()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_read_back_and_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = SigningKey::create(&path).unwrap();
        assert!(matches!(SigningKey::create(&path), Err(KeyError::Io { what: "made", .. })));
        assert_eq!(SigningKey::load(&path).unwrap().public_key(), made.public_key());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(SigningKey::load(&path), Err(KeyError::Open { mode: 0o640, .. })));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(SigningKey::load(&path), Err(KeyError::NotAKey { .. })));
    }

    #[test]
    fn a_signature_is_for_one_hash_and_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let key = SigningKey::create(&folder.path().join("a")).unwrap();
        let other = SigningKey::create(&folder.path().join("b")).unwrap();
        let hash = Digest::of(b"x");
        let signature = key.sign(&hash);
        assert_eq!(check(&signature, &hash), Ok(()));
        assert!(check(&signature, &Digest::of(b"y")).is_err());
        assert!(check(&Signature { public_key: other.public_key(), ..signature.clone() }, &hash).is_err());
        assert!(check(&Signature { value: "00".repeat(64), ..signature.clone() }, &hash).is_err());
        assert!(check(&Signature { algorithm: "none".into(), ..signature }, &hash).is_err());
    }
}
