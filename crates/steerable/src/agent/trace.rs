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

/// What a call cost, as attributes.
pub(super) fn usage_attrs(usage: Usage) -> [(&'static str, Value); 4] {
    [
        ("promptTokens", Value::from(usage.prompt_tokens)),
        ("completionTokens", Value::from(usage.completion_tokens)),
        ("totalTokens", Value::from(usage.total_tokens)),
        ("cachedPromptTokens", Value::from(usage.cached_prompt_tokens)),
    ]
}
