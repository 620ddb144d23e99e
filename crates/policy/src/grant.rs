//! Grants: a capability is allowed only where every layer allows it, and what cannot be read allows nothing.

use crate::decision::{Action, Decision, Reason, Rule, Verdict};
use crate::glob::{Glob, GlobError, MAX_LIST_BYTES, Reading};
use crate::name::{Capability, Subject};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The most entries that one list of a layer may have.
pub const MAX_LAYER_ENTRIES: usize = 1024;

/// Who speaks in a layer. The order is the order in which a denial is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Voice {
    /// What the subject says that it wants.
    Declared,
    /// What the operator grants to it.
    Operator,
    /// What anybody may have who is trusted this much.
    Ceiling,
    /// What the platform profile has at all.
    Profile,
}

impl Voice {
    /// The layer's name in a [`Rule`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Voice::Declared => "declared",
            Voice::Operator => "operator",
            Voice::Ceiling => "ceiling",
            Voice::Profile => "profile",
        }
    }

    fn refusal(self) -> Reason {
        match self {
            Voice::Declared => Reason::NotDeclared,
            Voice::Operator => Reason::NotGranted,
            Voice::Ceiling => Reason::TrustCeiling,
            Voice::Profile => Reason::ProfileForbidden,
        }
    }
}

/// What one voice says. Within it a denial beats a question and a question beats a permission; silence denies.
#[derive(Clone, Debug)]
pub struct Layer {
    voice: Voice,
    rules: Rules,
}

#[derive(Clone, Debug)]
enum Rules {
    Unreadable { why: String },
    Lists { allow: Vec<Glob>, ask: Vec<Glob>, deny: Vec<Glob> },
}

/// The lists of a layer as they are written down. Entries are names or name globs (`messages.*`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerLists {
    /// May be used.
    #[serde(default)]
    pub allow: Vec<String>,
    /// May be used once a person agrees.
    #[serde(default)]
    pub ask: Vec<String>,
    /// May not be used, whatever the other lists say.
    #[serde(default)]
    pub deny: Vec<String>,
}

/// Why lists could not become a layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayerError {
    /// More than [`MAX_LAYER_ENTRIES`] in one list.
    #[error("the list `{list}` has {count} entries; the limit is {MAX_LAYER_ENTRIES}")]
    TooMany {
        /// Which list.
        list: &'static str,
        /// How many it has.
        count: usize,
    },
    /// More than [`MAX_LIST_BYTES`] in one list.
    #[error("the list `{list}` has {bytes} bytes of patterns; the limit is {MAX_LIST_BYTES}")]
    TooLong {
        /// Which list.
        list: &'static str,
        /// How many bytes its patterns have.
        bytes: usize,
    },
    /// An entry is not a pattern.
    #[error("entry {index} of the list `{list}` is not a pattern: {error}")]
    Pattern {
        /// Which list.
        list: &'static str,
        /// Which entry, from 0.
        index: usize,
        /// What is wrong with it.
        error: GlobError,
    },
}

impl Layer {
    /// Compiles what `voice` says.
    pub fn new(voice: Voice, lists: &LayerLists) -> Result<Layer, LayerError> {
        let rules = Rules::Lists {
            allow: compile("allow", &lists.allow)?,
            ask: compile("ask", &lists.ask)?,
            deny: compile("deny", &lists.deny)?,
        };
        Ok(Layer { voice, rules })
    }

    /// A layer that allows exactly these capabilities.
    #[must_use]
    pub fn only<'a>(voice: Voice, capabilities: impl IntoIterator<Item = &'a Capability>) -> Layer {
        let allow = capabilities.into_iter().map(|capability| Glob::literal(capability.as_str())).collect();
        Layer { voice, rules: Rules::Lists { allow, ask: Vec::new(), deny: Vec::new() } }
    }

    /// A layer that could not be read. It denies everything.
    #[must_use]
    pub fn unreadable(voice: Voice, why: &str) -> Layer {
        Layer { voice, rules: Rules::Unreadable { why: why.to_owned() } }
    }

    /// Why the layer could not be read; none when it could.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match &self.rules {
            Rules::Unreadable { why } => Some(why),
            Rules::Lists { .. } => None,
        }
    }

    /// A layer from a stored JSON object `{"allow": […], "ask": […], "deny": […]}`. What is absent, broken or
    /// has an unknown member is unreadable, and so denies.
    #[must_use]
    pub fn from_json(voice: Voice, stored: Option<&[u8]>) -> Layer {
        let Some(stored) = stored else { return Layer::unreadable(voice, "there is nothing stored") };
        match serde_json::from_slice::<LayerLists>(stored) {
            Err(error) => Layer::unreadable(voice, &error.to_string()),
            Ok(lists) => {
                Layer::new(voice, &lists).unwrap_or_else(|error| Layer::unreadable(voice, &error.to_string()))
            }
        }
    }

    fn judge(&self, capability: &Capability) -> (Reason, Rule) {
        let rule = |pattern: Option<&Glob>| Rule {
            list: self.voice.name(),
            pattern: pattern.map(|glob| glob.pattern().to_owned()),
        };
        let (allow, ask, deny) = match &self.rules {
            Rules::Unreadable { .. } => return (Reason::GrantsUnreadable, rule(None)),
            Rules::Lists { allow, ask, deny } => (allow, ask, deny),
        };
        if let Some(glob) = first_match(deny, capability) {
            return (self.voice.refusal(), rule(Some(glob)));
        }
        if let Some(glob) = first_match(ask, capability) {
            return (Reason::NeedsApproval, rule(Some(glob)));
        }
        match first_match(allow, capability) {
            Some(glob) => (Reason::Granted, rule(Some(glob))),
            None => (self.voice.refusal(), rule(None)),
        }
    }
}

/// What one subject may do: the intersection of its layers, less what was revoked.
#[derive(Clone, Debug)]
pub struct Grants {
    subject: Subject,
    layers: Vec<Layer>,
    revoked: BTreeSet<Capability>,
}

impl Grants {
    /// The grants of `subject`. Without any layer everything is denied.
    #[must_use]
    pub fn new(subject: Subject, mut layers: Vec<Layer>) -> Grants {
        layers.sort_by_key(|layer| layer.voice);
        Grants { subject, layers, revoked: BTreeSet::new() }
    }

    /// May the subject use `capability`, now?
    #[must_use]
    pub fn decide(&self, capability: &Capability) -> Decision {
        let decision =
            |reason, rule| Decision::new(reason, rule, &self.subject, Action::Use, capability.as_str());
        let answers = self.layers.iter().map(|layer| layer.judge(capability));
        let answers = answers.map(|(reason, rule)| decision(reason, Some(rule)));
        let granted =
            answers.reduce(Decision::and).unwrap_or_else(|| decision(Reason::GrantsUnreadable, None));
        // What was never granted keeps that reason: taking it back again changes nothing.
        if granted.verdict != Verdict::Deny && self.revoked.contains(capability) {
            let list = Voice::Operator.name();
            let rule = Rule { list, pattern: Some(capability.as_str().to_owned()) };
            return decision(Reason::Revoked, Some(rule));
        }
        granted
    }

    /// Takes a capability back. The next [`Grants::decide`] denies it. Returns whether anything changed.
    pub fn revoke(&mut self, capability: Capability) -> bool {
        self.revoked.insert(capability)
    }

    /// Undoes [`Grants::revoke`]; the layers decide again. Returns whether anything changed.
    pub fn reinstate(&mut self, capability: &Capability) -> bool {
        self.revoked.remove(capability)
    }

    /// Replaces the layer of the same voice, or adds it. What was revoked stays revoked.
    pub fn replace(&mut self, layer: Layer) {
        self.layers.retain(|old| old.voice != layer.voice);
        self.layers.push(layer);
        self.layers.sort_by_key(|layer| layer.voice);
    }

    /// Those of `capabilities` that are allowed without asking.
    pub fn allowed<'a>(
        &self,
        capabilities: impl IntoIterator<Item = &'a Capability>,
    ) -> impl Iterator<Item = &'a Capability> {
        capabilities.into_iter().filter(|capability| self.decide(capability).is_allowed())
    }

    /// Whose grants these are.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }
}

fn first_match<'a>(list: &'a [Glob], capability: &Capability) -> Option<&'a Glob> {
    list.iter().find(|glob| glob.matches(capability.as_str()))
}

fn compile(list: &'static str, entries: &[String]) -> Result<Vec<Glob>, LayerError> {
    if entries.len() > MAX_LAYER_ENTRIES {
        return Err(LayerError::TooMany { list, count: entries.len() });
    }
    let bytes = entries.iter().map(String::len).sum();
    if bytes > MAX_LIST_BYTES {
        return Err(LayerError::TooLong { list, bytes });
    }
    let entry = |(index, text): (usize, &String)| {
        Glob::new(text, Reading::Name).map_err(|error| LayerError::Pattern { list, index, error })
    };
    entries.iter().enumerate().map(entry).collect()
}
