//! What a work order needs of a backend, against what the backend offers.

use schemars::JsonSchema;
use serde::Serialize;

use super::capability::{Capability, Manifest, SupportLevel};
use super::word::words;

words! {
    /// How well something must be supported.
    MinSupport {
        Native = "native",
        Emulated = "emulated",
        Any = "any",
    }
}

/// What a work order needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Requirements {
    /// All of these.
    #[schemars(default)]
    pub required: Vec<Requirement>,
}

/// One thing that a work order needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Requirement {
    /// What.
    pub capability: Capability,
    /// How well.
    pub min_support: MinSupport,
}

/// What came out: each requirement is in one of three lists, in the order of the work order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Negotiation {
    /// Supported natively.
    pub native: Vec<Capability>,
    /// Supported by other means, with a restriction, or in a way that we do not know.
    pub emulated: Vec<EmulatedCapability>,
    /// Not supported well enough.
    pub missing: Vec<MissingCapability>,
}

/// A requirement that is satisfied by other means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EmulatedCapability {
    /// Which one.
    pub capability: Capability,
    /// Who emulates it: always the backend.
    pub source: &'static str,
    /// How the backend describes it.
    pub description: String,
}

/// A requirement that is not satisfied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingCapability {
    /// Which one.
    pub capability: Capability,
    /// What is needed and what is offered.
    pub reason: String,
}

impl Negotiation {
    /// Whether the run may begin.
    #[must_use]
    pub fn is_satisfied(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Looks up each requirement in the manifest.
#[must_use]
pub fn negotiate(requirements: &Requirements, manifest: &Manifest) -> Negotiation {
    let mut negotiation = Negotiation::default();
    for Requirement { capability, min_support } in &requirements.required {
        let level = manifest.level(capability);
        match level.filter(|level| satisfies(level, min_support)) {
            Some(SupportLevel::Native) => negotiation.native.push(capability.clone()),
            Some(level) => negotiation.emulated.push(EmulatedCapability {
                capability: capability.clone(),
                source: "backend",
                description: describe(level),
            }),
            None => {
                let offered = level.map_or_else(|| "nothing".to_owned(), describe);
                let reason = format!("`{min_support}` is needed, the backend offers {offered}");
                negotiation.missing.push(MissingCapability { capability: capability.clone(), reason });
            }
        }
    }
    negotiation
}

/// A level that we do not know satisfies `any` only; a minimum that we do not know is satisfied by native only.
fn satisfies(level: &SupportLevel, minimum: &MinSupport) -> bool {
    match (minimum, level) {
        (_, SupportLevel::Unsupported) => false,
        (_, SupportLevel::Native) | (MinSupport::Any, _) => true,
        (MinSupport::Emulated, SupportLevel::Emulated | SupportLevel::Restricted { .. }) => true,
        (MinSupport::Emulated, SupportLevel::Other(_)) => false,
        (MinSupport::Native | MinSupport::Other(_), _) => false,
    }
}

fn describe(level: &SupportLevel) -> String {
    match level {
        SupportLevel::Restricted { reason } => format!("restricted: {reason}"),
        SupportLevel::Native
        | SupportLevel::Emulated
        | SupportLevel::Unsupported
        | SupportLevel::Other(_) => level.word().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::raw::Raw;

    #[test]
    fn each_minimum_is_satisfied_by_the_levels_that_the_contract_names() {
        let levels = [
            SupportLevel::Native,
            SupportLevel::Emulated,
            SupportLevel::Restricted { reason: "r".into() },
            SupportLevel::Unsupported,
            SupportLevel::Other(Raw::new("\"psychic\"").unwrap()),
        ];
        for (minimum, expected) in [
            ("native", [true, false, false, false, false]),
            ("emulated", [true, true, true, false, false]),
            ("any", [true, true, true, false, true]),
            ("godlike", [true, false, false, false, false]),
        ] {
            for (level, expected) in levels.iter().zip(expected) {
                assert_eq!(satisfies(level, &MinSupport::from(minimum)), expected, "{minimum} {level:?}");
            }
        }
    }

    #[test]
    fn a_failed_negotiation_lists_every_requirement_that_fails_with_what_is_offered() {
        let need = |capability: &str, minimum: &str| Requirement {
            capability: capability.into(),
            min_support: minimum.into(),
        };
        let requirements = Requirements {
            required: vec![
                need("streaming", "native"),
                need("tool_read", "emulated"),
                need("vision", "any"),
                need("audio", "native"),
            ],
        };
        let manifest: Manifest = [
            (Capability::Streaming, SupportLevel::Native),
            (Capability::ToolRead, SupportLevel::Restricted { reason: "text only".into() }),
            (Capability::Audio, SupportLevel::Emulated),
        ]
        .into_iter()
        .collect();
        let negotiation = negotiate(&requirements, &manifest);
        assert!(!negotiation.is_satisfied());
        assert_eq!(
            serde_json::to_value(&negotiation).unwrap(),
            serde_json::json!({
                "native": ["streaming"],
                "emulated": [{"capability": "tool_read", "source": "backend", "description": "restricted: text only"}],
                "missing": [
                    {"capability": "vision", "reason": "`any` is needed, the backend offers nothing"},
                    {"capability": "audio", "reason": "`native` is needed, the backend offers emulated"},
                ],
            })
        );
    }
}
