//! Keys: the author's, which signs, and those that a host knows, by name.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signer, Verifier};
use serde::{Deserialize, Serialize};

/// The name of a key: letters, digits, `.`, `_` and `-`, not a dot first, at most 128. Safe as the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct KeyId(String);

/// Why a text is not the name of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not the name of a key: letters, digits, `.`, `_` and `-`, not a dot first, at most 128")]
pub struct BadKeyId(String);

impl KeyId {
    /// Checks `text` and makes it a name.
    ///
    /// # Errors
    /// When it is not safe as the name of a file.
    pub fn new(text: &str) -> Result<Self, BadKeyId> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let right = (1..=128).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(fits);
        match right {
            true => Ok(Self(text.to_owned())),
            false => Err(BadKeyId(super::finding::quoted(text))),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("the key {} cannot be {what}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Read or made.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Others can read a secret key, or change a public one.
    #[error("the key {} is open to others (mode {mode:o}); make it {wanted}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// What it should be.
        wanted: &'static str,
    },
    /// It is not a key.
    #[error("the key {} is not 64 hexadecimal digits of an Ed25519 key", path.display())]
    NotAKey {
        /// Which file.
        path: PathBuf,
    },
    /// The system has no randomness to give.
    #[error("there is no randomness for a new key: {0}")]
    NoRandomness(getrandom::Error),
}

/// The secret key of an author: a file with 64 hexadecimal digits that only its owner can read.
pub struct AuthorKey(ed25519_dalek::SigningKey);

impl AuthorKey {
    /// Makes a new key in a file that is not there yet, and its public half in `<file>.pub`, ready for a keyring.
    ///
    /// # Errors
    /// When one of the files is there already or cannot be made.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(KeyError::NoRandomness)?;
        let key = Self(ed25519_dalek::SigningKey::from_bytes(&seed));
        let write = |path: &Path, mode: u32, text: &str| {
            let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
            made.and_then(|mut file| {
                file.write_all(format!("{text}\n").as_bytes()).and_then(|()| file.sync_all())
            })
            .map_err(|source| KeyError::Io { path: path.to_owned(), what: "made", source })
        };
        write(path, 0o600, &hex(&seed))?;
        write(&public_path(path), 0o644, &key.public())?;
        Ok(key)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// When it cannot be read, others can read it, or it is not a key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let seed = read_digits(path, 0o077, "600")?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// The public half, in hexadecimal digits.
    #[must_use]
    pub fn public(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }
}

impl fmt::Debug for AuthorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthorKey({})", self.public())
    }
}

/// The keys that a host knows: a folder with `<name>.pub` files.
#[derive(Clone, Debug)]
pub struct Keyring {
    dir: PathBuf,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(ed25519_dalek::VerifyingKey);

impl Keyring {
    /// The keys in `dir`. It need not exist.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The key with this name; none if nobody knows it.
    ///
    /// # Errors
    /// When there is a file that cannot be read, that others can change, or that is not a key.
    pub fn find(&self, id: &KeyId) -> Result<Option<PublicKey>, KeyError> {
        let path = self.dir.join(format!("{id}.pub"));
        let bytes = match read_digits(&path, 0o022, "644") {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let key = ed25519_dalek::VerifyingKey::from_bytes(&bytes);
        // A weak key would verify signatures that nobody made.
        let key = key.ok().filter(|key| !key.is_weak()).ok_or(KeyError::NotAKey { path })?;
        Ok(Some(PublicKey(key)))
    }
}

impl PublicKey {
    /// Whether `signature` was made with this key for these bytes.
    pub(super) fn verifies(&self, bytes: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify(bytes, &ed25519_dalek::Signature::from_bytes(signature)).is_ok()
    }
}

fn read_digits(path: &Path, forbidden: u32, wanted: &'static str) -> Result<[u8; 32], KeyError> {
    let failed = |source| KeyError::Io { path: path.to_owned(), what: "read", source };
    // Not blocking, so that a pipe in the place of a key does not stop the host.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let not_a_key = || KeyError::NotAKey { path: path.to_owned() };
    if !metadata.is_file() {
        return Err(not_a_key());
    }
    let mode = metadata.mode() & 0o777;
    if mode & forbidden != 0 {
        return Err(KeyError::Open { path: path.to_owned(), mode, wanted });
    }
    let mut text = String::new();
    match file.take(128).read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(not_a_key()),
        read => read.map_err(failed)?,
    };
    unhex(text.trim()).ok_or_else(not_a_key)
}

fn public_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let pairs: &[[u8; 2]; 32] = pairs.try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}
