//! What a model call cost, in tokens.

/// Tokens of one call or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that went in, the cached ones included.
    pub prompt_tokens: u64,
    /// Tokens that came out, the reasoning included.
    pub completion_tokens: u64,
    /// Both, or what the provider says they are.
    pub total_tokens: u64,
    /// How many of those that went in were read from the provider's cache.
    pub cached_prompt_tokens: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cached_prompt_tokens: self.cached_prompt_tokens.saturating_add(other.cached_prompt_tokens),
        }
    }

    /// What a budget is charged: cached tokens count a tenth.
    #[must_use]
    pub const fn billed(self) -> u64 {
        let cached = if self.cached_prompt_tokens < self.total_tokens {
            self.cached_prompt_tokens
        } else {
            self.total_tokens
        };
        self.total_tokens - cached + cached / 10
    }
}
