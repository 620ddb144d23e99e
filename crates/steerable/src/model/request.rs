//! What one call of a model is asked for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::provider::Provider;
use crate::chat::{Message, Secret, ToolSpec};

/// One call of a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The dialect.
    pub provider: Provider,
    /// The model, in the provider's words.
    pub model: String,
    /// Where; the provider's home if not said. For [`Provider::Scripted`] the path of the file.
    pub base_url: Option<String>,
    /// With which key.
    pub api_key: Option<Secret>,
    /// The conversation so far.
    pub messages: Arc<[Message]>,
    /// What the model may call.
    pub tools: Vec<ToolSpec>,
    /// How freely it speaks.
    pub temperature: Option<f64>,
    /// How much it may say.
    pub max_tokens: Option<u64>,
    /// How hard it should think: `low`, `medium`, `high`, or a word that only the provider knows.
    pub reasoning_effort: Option<String>,
    /// Members of the provider's own body that win over ours.
    pub options: Option<Map<String, Value>>,
    /// The JSON Schema that the answer should fit. It is asked for, not enforced.
    pub response_schema: Option<Box<RawValue>>,
    /// Whether to mark what the provider should keep.
    pub cache: CacheMarks,
    /// How long to wait and how often to try.
    pub patience: Patience,
}

impl Request {
    /// A request with nothing but what it needs, at the provider's home with the standard patience.
    #[must_use]
    pub fn new(provider: Provider, model: impl Into<String>, messages: impl Into<Arc<[Message]>>) -> Self {
        Self {
            provider,
            model: model.into(),
            base_url: None,
            api_key: None,
            messages: messages.into(),
            tools: Vec::new(),
            temperature: None,
            max_tokens: None,
            reasoning_effort: None,
            options: None,
            response_schema: None,
            cache: CacheMarks::Send,
            patience: Patience::STANDARD,
        }
    }

    /// Where the provider is, without slashes at the end. An empty address is as good as none.
    pub(super) fn base(&self) -> &str {
        let said = self.base_url.as_deref().map(str::trim).filter(|base| !base.is_empty());
        said.unwrap_or_else(|| self.provider.home()).trim_end_matches('/')
    }
}

/// Whether prompt caching marks are sent, where a provider has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMarks {
    /// On the system prompt, the tools and the last message of the user.
    Send,
    /// None.
    Omit,
}

/// How long a call may take and how often it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the call until the provider's headers.
    pub connect: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// All attempts together.
    pub total: Duration,
    /// How often the call is made at most; at least once.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with every further one.
    pub base_delay: Duration,
    /// The longest of those waits.
    pub max_delay: Duration,
    /// The longest wait that a provider may ask for; if it wants more, the call fails at once.
    pub longest_retry_after: Duration,
}

impl Patience {
    /// 30 s to connect, 300 s of silence, 1,800 s in all; three attempts, 200 ms apart and doubling up to 5 s, and up to
    /// 180 s if the provider asks for it.
    pub const STANDARD: Self = Self {
        connect: Duration::from_secs(30),
        idle: Duration::from_secs(300),
        total: Duration::from_secs(1800),
        attempts: 3,
        base_delay: Duration::from_millis(200),
        max_delay: Duration::from_secs(5),
        longest_retry_after: Duration::from_secs(180),
    };
}
