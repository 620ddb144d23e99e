//! What a turn leaves in its trace: spans that end even if whoever opened them is dropped.

use serde_json::{Map, Value};

use crate::chat::Usage;
use crate::protocol::{SpanKind, SpanStatus};
use crate::store::{SpanId, Tracer};

/// A span that says `cancelled` if it is dropped before it was ended.
pub(super) struct OpenSpan {
    tracer: Tracer,
    id: SpanId,
}

impl OpenSpan {
    pub(super) fn new(
        tracer: &Tracer,
        name: &str,
        kind: SpanKind,
        parent: Option<SpanId>,
        attrs: Map<String, Value>,
    ) -> Self {
        Self { tracer: tracer.clone(), id: tracer.span(name, kind, parent, attrs) }
    }

    pub(super) const fn id(&self) -> SpanId {
        self.id
    }

    pub(super) fn end(self, status: SpanStatus, attrs: Map<String, Value>) {
        // Ending twice changes nothing, so the drop that follows does no harm.
        self.tracer.end_span(self.id, status, attrs);
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        self.tracer.end_span(self.id, SpanStatus::Cancelled, Map::new());
    }
}

/// Attributes; those that are null are left out.
pub(super) fn attrs<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    let told = pairs.into_iter().filter(|(_, value)| !value.is_null());
    told.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What a call of the model cost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cost {
    /// The provider has counted.
    Counted(Usage),
    /// Nobody has, so this is what it looks like. Budgets are charged with it; nobody is told that it is true.
    Guessed(Usage),
}

impl Cost {
    /// What came to about so many tokens out of a prompt of so many.
    pub(super) fn guess(prompt_tokens: u64, completion_tokens: u64) -> Self {
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self::Guessed(Usage { prompt_tokens, completion_tokens, total_tokens, cached_prompt_tokens: 0 })
    }

    /// What a budget is charged with.
    pub(super) const fn usage(self) -> Usage {
        match self {
            Self::Counted(usage) | Self::Guessed(usage) => usage,
        }
    }

    /// What the provider has counted.
    pub(super) const fn counted(self) -> Option<Usage> {
        match self {
            Self::Counted(usage) => Some(usage),
            Self::Guessed(_) => None,
        }
    }

    pub(super) fn attrs(self) -> Map<String, Value> {
        match self {
            Self::Counted(usage) => usage_attrs(usage),
            Self::Guessed(usage) => attrs([("guessedTokens", Value::from(usage.total_tokens))]),
        }
    }
}

/// What calls cost, as attributes.
pub(super) fn usage_attrs(usage: Usage) -> Map<String, Value> {
    attrs([
        ("promptTokens", Value::from(usage.prompt_tokens)),
        ("completionTokens", Value::from(usage.completion_tokens)),
        ("totalTokens", Value::from(usage.total_tokens)),
        ("cachedPromptTokens", Value::from(usage.cached_prompt_tokens)),
    ])
}
