//! Which provider a word means, and where it lives.

/// A dialect that models are spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Chat completions, of OpenAI or anybody.
    ChatCompletions,
    /// Chat completions of an Ollama on this machine.
    Ollama,
    /// OpenAI's Responses.
    Responses,
    /// Responses at x.ai. It differs only in where it lives.
    Xai,
    /// Anthropic's Messages.
    Messages,
    /// Google's Gemini.
    Gemini,
    /// A file of answers.
    Scripted,
}

/// One word for every provider, for a health's `loadedProviders`.
pub const NAMES: [&str; 7] =
    ["openai", "ollama", "openai-responses", "xai", "anthropic", "google", "scripted"];

impl Provider {
    /// The provider that a word of a host means. Blanks around it and its case do not matter.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word.trim().to_ascii_lowercase().as_str() {
            "openai" | "openai_compat" | "openai-compatible" => Self::ChatCompletions,
            "ollama" => Self::Ollama,
            "openai-responses" | "openai_responses" | "responses" => Self::Responses,
            "xai" => Self::Xai,
            "anthropic" | "claude" => Self::Messages,
            "google" | "gemini" | "google-genai" | "google_genai" => Self::Gemini,
            "scripted" => Self::Scripted,
            _ => return None,
        })
    }

    /// Its name, in messages and traces.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ChatCompletions => "openai",
            Self::Ollama => "ollama",
            Self::Responses => "openai-responses",
            Self::Xai => "xai",
            Self::Messages => "anthropic",
            Self::Gemini => "google",
            Self::Scripted => "scripted",
        }
    }

    /// Where it is asked if the host does not say.
    pub(super) const fn home(self) -> &'static str {
        match self {
            Self::ChatCompletions | Self::Responses => "https://api.openai.com/v1",
            Self::Ollama => "http://127.0.0.1:11434",
            Self::Xai => "https://api.x.ai/v1",
            Self::Messages => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Scripted => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_the_provider_that_bears_it() {
        for name in NAMES {
            assert_eq!(Provider::from_word(name).map(Provider::word), Some(name));
        }
    }

    #[test]
    fn words_are_trimmed_and_case_does_not_matter() {
        assert_eq!(Provider::from_word(" OpenAI_Compat\n"), Some(Provider::ChatCompletions));
        assert_eq!(Provider::from_word("Claude"), Some(Provider::Messages));
        assert_eq!(Provider::from_word("google_genai"), Some(Provider::Gemini));
        assert_eq!(Provider::from_word("mistral"), None);
        assert_eq!(Provider::from_word(""), None);
    }
}
