//! Which contract a child speaks.

use std::fmt;

use serde::{Serialize, Serializer};

/// `abp/vMAJOR.MINOR`, or a text that is no such thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContractVersion(String);

impl ContractVersion {
    /// What we send.
    pub const OURS: &'static str = "abp/v0.1";

    /// The text as it came.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What we send.
    #[must_use]
    pub fn ours() -> Self {
        Self(Self::OURS.to_owned())
    }

    /// The text as it came.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Major and minor, if it has the form of a version.
    #[must_use]
    pub fn numbers(&self) -> Option<(u32, u32)> {
        let (major, minor) = self.0.strip_prefix("abp/v")?.split_once('.')?;
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok());
        Some((number(major)??, number(minor)??))
    }

    /// Whether a child that speaks it can be talked to: the same major version as ours.
    #[must_use]
    pub fn is_compatible(&self) -> bool {
        self.numbers().is_some_and(|(major, _)| major == 0)
    }
}

impl fmt::Display for ContractVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ContractVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl schemars::JsonSchema for ContractVersion {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ContractVersion".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": [Self::OURS] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_same_major_are_compatible_and_everything_else_is_not() {
        for text in ["abp/v0.1", "abp/v0.2", "abp/v0.0", "abp/v0.4294967295"] {
            assert!(ContractVersion::new(text).is_compatible(), "{text}");
        }
        for text in [
            "abp/v1.0",
            "abp/v999.0",
            "banana",
            "",
            "abp/v0",
            "abp/v0.",
            "abp/v.1",
            "abp/v+0.1",
            "abp/v0.4294967296",
            "ABP/v0.1",
            "abp/v0.1 ",
            "abp/v0.1.2",
            "v0.1",
        ] {
            assert!(!ContractVersion::new(text).is_compatible(), "{text}");
        }
        assert_eq!(ContractVersion::new("abp/v12.34").numbers(), Some((12, 34)));
    }
}
