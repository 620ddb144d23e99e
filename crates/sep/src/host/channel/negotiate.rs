//! Which version a session speaks: the host offers, the extension chooses, and a choice that makes no sense ends it. Pure.

use outrigger_wire::rpc::{ErrorObject, code};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::words::words;
use crate::protocol::{Initialized, Version};

/// What is offered, and what the extension said that it needs.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The highest.
    pub highest: Version,
    /// All of them.
    pub supported: &'a [Version],
    /// The lowest that the manifest can do with.
    pub needed: Version,
}

words! {
    /// What is wrong with the version that an extension chose.
    Mismatch ("mismatch of versions") {
        /// It is lower than what the manifest needs, so the extension contradicts itself.
        Inconsistent = "version_inconsistent",
        /// It was not offered.
        NotOffered = "version_not_offered",
        /// The answer names none, or is none.
        Missing = "version_missing",
        /// The extension said that it can do with none of them.
        Unsupported = "version_unsupported",
    }
}

/// Why a session did not begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Disagreement {
    /// There is no version to speak. Starting it again cannot help.
    #[error("no common version: {detail}, {said}")]
    Incompatible {
        /// What is wrong.
        detail: Mismatch,
        /// What the extension said, cut.
        said: String,
    },
    /// The extension answered with an error.
    #[error("the extension refused to begin: {0}")]
    Refused(ErrorObject),
}

/// Judges the answer to `sep.initialize`.
pub fn agree(offer: &Offer<'_>, answer: Result<&RawValue, ErrorObject>) -> Result<Initialized, Disagreement> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.code == code::sep::VERSION_UNSUPPORTED => {
            let said = cut(&error.message);
            return Err(Disagreement::Incompatible { detail: Mismatch::Unsupported, said });
        }
        Err(error) => return Err(Disagreement::Refused(error)),
    };
    let wrong = |detail| Disagreement::Incompatible { detail, said: cut(answer.get()) };
    let initialized = read(answer).ok_or_else(|| wrong(Mismatch::Missing))?;
    let chosen = initialized.protocol_version;
    // The last number never matters, so neither does it here.
    let is = |offered: &Version| (offered.major, offered.minor) == (chosen.major, chosen.minor);
    if !offer.highest.serves(chosen) || !offer.supported.iter().any(is) {
        return Err(wrong(Mismatch::NotOffered));
    }
    if !chosen.serves(offer.needed) {
        return Err(wrong(Mismatch::Inconsistent));
    }
    Ok(initialized)
}

/// Only the version matters; what the extension says about itself beyond that is kept if it makes sense.
fn read(answer: &RawValue) -> Option<Initialized> {
    if let Ok(whole) = serde_json::from_str(answer.get()) {
        return Some(whole);
    }
    let value: Value = serde_json::from_str(answer.get()).ok()?;
    let protocol_version = Version::parse(value.get("protocolVersion")?.as_str()?).ok()?;
    Some(Initialized { protocol_version, extension: None, features: Vec::new() })
}

fn cut(text: &str) -> String {
    text.escape_debug().take(200).collect()
}

#[cfg(test)]
mod tests {
    use outrigger_wire::rpc::Code;

    use super::*;
    use crate::protocol::{V1_0, V1_1};

    const OFFER: Offer<'static> = Offer { highest: V1_1, supported: &[V1_1, V1_0], needed: V1_0 };

    fn answered(offer: &Offer<'_>, answer: &str) -> Result<Version, Mismatch> {
        let raw = RawValue::from_string(answer.to_owned()).expect("the test writes JSON");
        match agree(offer, Ok(&raw)) {
            Ok(initialized) => Ok(initialized.protocol_version),
            Err(Disagreement::Incompatible { detail, .. }) => Err(detail),
            Err(Disagreement::Refused(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn the_extension_chooses_among_what_is_offered() {
        assert_eq!(answered(&OFFER, r#"{"protocolVersion":"1.1.0"}"#), Ok(V1_1));
        assert_eq!(answered(&OFFER, r#"{"protocolVersion":"1.0.0","more":[1]}"#), Ok(V1_0));
        let patch = Version { patch: 9, ..V1_0 };
        assert_eq!(answered(&OFFER, r#"{"protocolVersion":"1.0.9"}"#), Ok(patch));
        let odd = r#"{"protocolVersion":"1.0.0","extension":7,"features":"x"}"#;
        assert_eq!(answered(&OFFER, odd), Ok(V1_0), "what it says about itself does not matter");
    }

    #[test]
    fn a_choice_that_makes_no_sense_is_incompatible() {
        for (answer, detail) in [
            (r#"{"protocolVersion":"1.2.0"}"#, Mismatch::NotOffered),
            (r#"{"protocolVersion":"2.0.0"}"#, Mismatch::NotOffered),
            (r#"{"protocolVersion":"0.9.0"}"#, Mismatch::NotOffered),
            (r#"{"protocolVersion":"99999999999999999999.0.0"}"#, Mismatch::NotOffered),
            (r#"{"protocolVersion":"1.1"}"#, Mismatch::Missing),
            (r#"{"protocolVersion":1.1}"#, Mismatch::Missing),
            (r#"{"protocolVersion":null}"#, Mismatch::Missing),
            ("{}", Mismatch::Missing),
            ("null", Mismatch::Missing),
            ("[]", Mismatch::Missing),
            ("\"1.1.0\"", Mismatch::Missing),
        ] {
            assert_eq!(answered(&OFFER, answer), Err(detail), "{answer}");
        }
        let gap = Offer { supported: &[V1_1], ..OFFER };
        assert_eq!(answered(&gap, r#"{"protocolVersion":"1.0.0"}"#), Err(Mismatch::NotOffered));
    }

    #[test]
    fn a_choice_below_the_manifest_contradicts_it() {
        let needs_more = Offer { needed: V1_1, ..OFFER };
        assert_eq!(answered(&needs_more, r#"{"protocolVersion":"1.0.0"}"#), Err(Mismatch::Inconsistent));
        assert_eq!(answered(&needs_more, r#"{"protocolVersion":"1.1.0"}"#), Ok(V1_1));
    }

    #[test]
    fn an_error_is_a_refusal_unless_it_is_about_the_version() {
        let error = ErrorObject::new(code::sep::VERSION_UNSUPPORTED, "too new for me");
        let said = agree(&OFFER, Err(error)).expect_err("it is an error");
        let expected =
            Disagreement::Incompatible { detail: Mismatch::Unsupported, said: "too new for me".into() };
        assert_eq!(said, expected);
        let error = ErrorObject::new(Code(-32603), "no database");
        assert_eq!(agree(&OFFER, Err(error.clone())), Err(Disagreement::Refused(error)));
    }
}
