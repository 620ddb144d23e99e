//! Strings and paths of the operating system in JSON, without losing a byte.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A string of the operating system: JSON text when it is UTF-8, otherwise an array of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Os(pub(crate) OsString);

impl Serialize for Os {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        os(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Os {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OsVisitor).map(Self)
    }
}

/// For `#[serde(with = …)]` on a path.
pub(crate) mod exact_path {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        os(path.as_os_str(), serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        deserializer.deserialize_any(OsVisitor).map(PathBuf::from)
    }
}

/// For `#[serde(with = …)]` on a list of paths.
pub(crate) mod exact_paths {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| Os(path.clone().into())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<Os>::deserialize(deserializer)?;
        Ok(paths.into_iter().map(|path| PathBuf::from(path.0)).collect())
    }
}

fn os<S: Serializer>(text: &OsStr, serializer: S) -> Result<S::Ok, S::Error> {
    match text.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => serializer.collect_seq(text.as_bytes()),
    }
}

struct OsVisitor;

impl<'de> Visitor<'de> for OsVisitor {
    type Value = OsString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array of bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<OsString, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<OsString, A::Error> {
        let mut collected = Vec::new();
        while let Some(byte) = bytes.next_element()? {
            collected.push(byte);
        }
        Ok(OsString::from_vec(collected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_and_readable_text_stays_readable() {
        for (bytes, json) in
            [(&b"/usr/bin"[..], "\"/usr/bin\""), (&[b'a', 0xff][..], "[97,255]"), (&b""[..], "\"\"")]
        {
            let os = Os(OsString::from_vec(bytes.to_vec()));
            assert_eq!(serde_json::to_string(&os).unwrap(), json);
            assert_eq!(serde_json::from_str::<Os>(json).unwrap(), os);
        }
        for bad in ["1", "null", "[256]", "[-1]", "{}"] {
            assert!(serde_json::from_str::<Os>(bad).is_err(), "{bad}");
        }
    }
}
