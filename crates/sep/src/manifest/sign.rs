//! Signatures: what is signed, how an author signs it, and what a host makes of it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use outrigger_policy::canonical::{CanonicalError, Spelling, hash};
use serde_json::Value;

use super::check::check_value;
use super::file::{FILE_NAME, read_manifest};
use super::finding::{Finding, any_error};
use super::key::{AuthorKey, KeyId, Keyring};
use super::splice;
use super::strict;
use super::tree::{TREE_BOUNDS, Tree, TreeDigest, TreeError};

/// What a host makes of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is none.
    Absent,
    /// It is right, and this key made it.
    Valid(KeyId),
    /// Nobody here knows the key.
    Unverified(String),
    /// It is wrong.
    Invalid(String),
}

/// What `manifest` says about its signature, held against the tree that it is in.
pub(super) fn verify(manifest: &Value, tree: &Tree, keyring: &Keyring) -> Verdict {
    let signing = &manifest["signing"];
    let (key_id, signature) =
        (signing["keyId"].as_str().unwrap_or(""), signing["signature"].as_str().unwrap_or(""));
    if signature.is_empty() {
        return Verdict::Absent;
    }
    let Some(value) = BASE64_STANDARD.decode(signature).ok().and_then(|bytes| bytes.try_into().ok()) else {
        return Verdict::Invalid("the signature is not 64 bytes in base64".to_owned());
    };
    let id = match KeyId::new(key_id) {
        Ok(id) => id,
        Err(_) if key_id.is_empty() => return Verdict::Unverified("it does not name its key".to_owned()),
        Err(bad) => return Verdict::Unverified(bad.to_string()),
    };
    let key = match keyring.find(&id) {
        Ok(Some(key)) => key,
        Ok(None) => return Verdict::Unverified(format!("there is no key `{id}` in the keyring")),
        Err(error) => return Verdict::Unverified(error.to_string()),
    };
    match signed_bytes(manifest, &tree.digest_without(FILE_NAME)) {
        Ok(bytes) if key.verifies(&bytes, &value) => Verdict::Valid(id),
        Ok(_) => Verdict::Invalid(format!("key `{id}` did not sign these files")),
        Err(error) => Verdict::Invalid(error.to_string()),
    }
}

/// The bytes that are signed: a name, the manifest as if it were not signed, and all other files.
fn signed_bytes(manifest: &Value, rest: &TreeDigest) -> Result<Vec<u8>, CanonicalError> {
    let mut unsigned = manifest.clone();
    if let Some(signature) = unsigned.pointer_mut("/signing/signature") {
        *signature = Value::String(String::new());
    }
    let manifest = hash(&unsigned, Spelling::Rfc8785)?;
    let mut bytes = b"SEP-MANIFEST-1\n".to_vec();
    bytes.extend_from_slice(manifest.as_bytes());
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// A signature for one extension as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The name of the key, as hosts know it.
    pub key_id: KeyId,
    /// The signature, in base64.
    pub signature: String,
    /// The manifest with the signature in it; otherwise as its author wrote it.
    pub manifest: String,
    dir: PathBuf,
}

/// Why an extension could not be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// Its manifest cannot be used, so a signature would be of no use.
    #[error("the manifest is not right: {} (and {} more)", first.message, more)]
    Manifest {
        /// The first of the findings.
        first: Box<Finding>,
        /// How many errors there are beside it.
        more: usize,
    },
    /// Its folder cannot be verified.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The manifest has no one spelling.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The manifest cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Signs the extension in `dir` as `key_id`. Writes nothing: [`Signed::install`] does.
///
/// # Errors
/// When its manifest is not right, or its folder has something in it that cannot be verified.
pub fn sign(dir: &Path, key: &AuthorKey, key_id: &KeyId) -> Result<Signed, SignError> {
    let bytes = read_manifest(&dir.join(FILE_NAME)).map_err(refused)?.bytes;
    // Errors only: an author may sign what this host would block.
    let findings = check(&bytes);
    if any_error(&findings) {
        return Err(refuse(findings));
    }
    let text = String::from_utf8_lossy(&bytes);
    let prepared = splice::signing(&text, key_id.as_str(), "");
    let (value, _) = strict::read(prepared.as_bytes());
    let value = value.ok_or_else(|| refuse(check(prepared.as_bytes())))?;
    let tree = Tree::read(dir, 0, TREE_BOUNDS)?;
    let signature = key.sign(&signed_bytes(&value, &tree.digest_without(FILE_NAME))?);
    let signature = BASE64_STANDARD.encode(signature);
    let manifest = splice::signing(&prepared, key_id.as_str(), &signature);
    Ok(Signed { key_id: key_id.clone(), signature, manifest, dir: dir.to_owned() })
}

impl Signed {
    /// Puts the signed manifest into its place, at once or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn install(&self) -> Result<(), SignError> {
        let path = self.dir.join(FILE_NAME);
        let fresh = self.dir.join(format!(".{FILE_NAME}.new"));
        let written = (|| {
            let mut file = fs::File::create(&fresh)?;
            file.set_permissions(fs::metadata(&path)?.permissions())?;
            file.write_all(self.manifest.as_bytes())?;
            file.sync_all()?;
            fs::rename(&fresh, &path)
        })();
        written.map_err(|source| {
            // What is left of the attempt would be part of the tree.
            let _ = fs::remove_file(&fresh);
            SignError::Write { path, source }
        })
    }
}

fn check(bytes: &[u8]) -> Vec<Finding> {
    match strict::read(bytes) {
        (Some(value), findings) => check_value(&value, findings).findings,
        (None, findings) => findings,
    }
}

fn refused(finding: Finding) -> SignError {
    SignError::Manifest { first: Box::new(finding), more: 0 }
}

fn refuse(findings: Vec<Finding>) -> SignError {
    let mut errors = findings.into_iter().filter(|finding| finding.severity == super::Severity::Error);
    let first = errors.next().unwrap_or_else(|| Finding::error(super::code::JSON, "", "it cannot be read"));
    SignError::Manifest { first: Box::new(first), more: errors.count() }
}
