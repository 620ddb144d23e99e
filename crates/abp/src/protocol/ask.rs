//! The extensions: what a host offers and a child knows, and a child that asks before it acts.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{EnvelopeError, Fields, Place};
use super::json::Piece;
use super::raw::Raw;
use super::word::words;

/// The version of the extensions.
pub const EXTENSIONS: u64 = 1;

words! {
    /// What a child is about to do.
    AskAction {
        /// Call a tool.
        Tool = "tool",
        /// Read a file.
        Read = "read",
        /// Write a file.
        Write = "write",
        /// Talk to another machine.
        Network = "network",
        /// Nothing: it wants to know something that only a person can say. `input` is the question, and the answer has it in
        /// `content`.
        Question = "question",
    }
}

words! {
    /// Who must say yes, whatever the policy would allow.
    AskNeeds {
        /// A person.
        Person = "person",
    }
}

words! {
    /// What a host may send to a child in the middle of a run.
    Taking {
        /// What the user says meanwhile.
        Steer = "steer",
    }
}

words! {
    /// Something that a host can take, beyond the contract.
    Feature {
        /// The child may ask before it acts.
        Ask = "ask",
        /// The child may report what it uses.
        Usage = "usage",
        /// The child may ask a person something.
        Question = "question",
    }
}

words! {
    /// What a host answers. A child that does not know the word must not act.
    AskDecision {
        /// It may.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
    }
}

/// What the host can take, in `run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Offer {
    /// Of the extensions.
    pub version: u64,
    /// Which of them.
    pub features: Vec<Feature>,
}

/// What the child promises to ask for, in `hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Powers {
    /// Of the extensions.
    pub version: u64,
    /// It asks before each of these.
    pub asks: Vec<AskAction>,
    /// It takes these in the middle of a run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub takes: Vec<Taking>,
}

/// A child asks before it acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ask<'a> {
    /// The run.
    pub ref_id: Cow<'a, str>,
    /// Chosen by the child; the answer has the same.
    pub id: Cow<'a, str>,
    /// What it is about to do.
    pub action: AskAction,
    /// With which tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Cow<'a, str>>,
    /// What it gives the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Raw<'a>>,
    /// Which file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Cow<'a, str>>,
    /// Which machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Cow<'a, str>>,
    /// The call that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// Who must say yes, if the policy alone is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<AskNeeds>,
}

/// The host's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer {
    /// The run.
    pub ref_id: String,
    /// Of the question.
    pub id: String,
    /// Whether it may.
    pub decision: AskDecision,
    /// Why.
    pub reason: String,
    /// What a person said to a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw<'static>>,
}

impl Offer {
    /// Everything there is.
    #[must_use]
    pub fn all() -> Self {
        Self { version: EXTENSIONS, features: Feature::ALL.to_vec() }
    }

    /// Whether a feature may be used.
    #[must_use]
    pub fn has(&self, feature: &Feature) -> bool {
        self.features.contains(feature)
    }

    /// Somebody else's member of that name is none of ours.
    pub(super) fn of_piece(piece: &Piece<'_>) -> Option<Self> {
        let (version, words) = extension(piece, "features")?;
        Some(Self { version, features: words.iter().map(|word| Feature::from(word.as_str())).collect() })
    }
}

impl Powers {
    /// One that asks for everything.
    #[must_use]
    pub fn asks_for_everything() -> Self {
        let asks = vec![AskAction::Tool, AskAction::Read, AskAction::Write, AskAction::Network];
        Self { version: EXTENSIONS, asks, takes: Vec::new() }
    }

    pub(super) fn of_piece(piece: &Piece<'_>) -> Option<Self> {
        let (version, words) = extension(piece, "asks")?;
        let takes = extension(piece, "takes").map(|(_, takes)| takes).unwrap_or_default();
        Some(Self {
            version,
            asks: words.iter().map(|word| AskAction::from(word.as_str())).collect(),
            takes: takes.iter().map(|word| Taking::from(word.as_str())).collect(),
        })
    }
}

fn extension(piece: &Piece<'_>, list: &'static str) -> Option<(u64, Vec<String>)> {
    let root = Place::ROOT;
    let fields = Fields::required(piece, &root, ["version", list]).ok()?;
    Some((fields.opt_u64("version").ok()??, fields.strings(list).ok()?))
}

impl<'a> Ask<'a> {
    pub(super) fn of_piece(piece: &Piece<'a>) -> Result<Self, EnvelopeError> {
        let root = Place::ROOT;
        let names = ["ref_id", "id", "action", "tool_name", "input", "path", "host", "tool_use_id", "needs"];
        let fields = Fields::required(piece, &root, names)?;
        let input = fields.piece("input");
        Ok(Self {
            ref_id: fields.text("ref_id")?,
            id: fields.text("id")?,
            action: AskAction::from(&*fields.text("action")?),
            tool_name: fields.opt_text("tool_name")?,
            input: (!input.is_none()).then(|| Raw::of_piece(&input)),
            path: fields.opt_text("path")?,
            host: fields.opt_text("host")?,
            tool_use_id: fields.opt_text("tool_use_id")?,
            needs: fields.opt_text("needs")?.map(|word| AskNeeds::from(&*word)),
        })
    }

    /// The same, owned.
    #[must_use]
    pub fn into_owned(self) -> Ask<'static> {
        Ask {
            ref_id: owned(self.ref_id),
            id: owned(self.id),
            action: self.action,
            tool_name: self.tool_name.map(owned),
            input: self.input.map(Raw::into_owned),
            path: self.path.map(owned),
            host: self.host.map(owned),
            tool_use_id: self.tool_use_id.map(owned),
            needs: self.needs,
        }
    }
}

impl Answer {
    pub(super) fn of_piece(piece: &Piece<'_>) -> Result<Self, EnvelopeError> {
        let root = Place::ROOT;
        let fields = Fields::required(piece, &root, ["ref_id", "id", "decision", "reason", "content"])?;
        let content = fields.piece("content");
        Ok(Self {
            ref_id: fields.text("ref_id")?.into_owned(),
            id: fields.text("id")?.into_owned(),
            decision: AskDecision::from(&*fields.text("decision")?),
            reason: fields.string_or_empty("reason")?,
            content: (!content.is_none()).then(|| Raw::of_piece(&content).into_owned()),
        })
    }
}

pub(super) fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
