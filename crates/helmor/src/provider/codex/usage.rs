//! How full the window of a thread is, as the server tells it from time to time.

use serde::Deserialize;
use serde_json::json;

/// How many threads are remembered: sub-agents have threads too, and the one that was told last matters most.
const THREADS: usize = 16;

/// How full the windows of the threads are.
#[derive(Debug, Default)]
pub(super) struct Usages(Vec<(String, Usage)>);

/// How full one window is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    used: u64,
    window: u64,
}

impl Usages {
    /// Looks at a notification; remembers what it says, if it is the right one.
    pub(super) fn note(&mut self, method: &str, params: &str) {
        if method != "thread/tokenUsage/updated" {
            return;
        }
        let Ok(told) = serde_json::from_str::<Told>(params) else { return };
        let Some(usage) = told.usage() else { return };
        self.0.retain(|(thread, _)| *thread != told.thread_id);
        if self.0.len() == THREADS {
            self.0.remove(0);
        }
        self.0.push((told.thread_id, usage));
    }

    /// What was last told about a thread.
    pub(super) fn of(&self, thread: &str) -> Option<Usage> {
        self.0.iter().find(|(known, _)| known == thread).map(|(_, usage)| *usage)
    }
}

impl Usage {
    /// As the host wants it: JSON as a text. More than the window is the window.
    pub(super) fn meta(self, model: &str) -> String {
        let used = self.used.min(self.window);
        // Two decimals: windows have at most some millions of tokens, so the product is far from its limit.
        let hundredths = used.saturating_mul(10_000) / self.window.max(1);
        let percentage = f64::from(u32::try_from(hundredths).unwrap_or(10_000)) / 100.0;
        json!({ "modelId": model, "usedTokens": used, "maxTokens": self.window, "percentage": percentage })
            .to_string()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    thread_id: String,
    token_usage: TokenUsage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenUsage {
    total: Option<Breakdown>,
    last: Option<Breakdown>,
    model_context_window: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Breakdown {
    total_tokens: u64,
}

impl Told {
    /// The last answer holds the whole conversation, so its tokens are what the window holds.
    fn usage(&self) -> Option<Usage> {
        let TokenUsage { total, last, model_context_window } = &self.token_usage;
        let used = last.as_ref().or(total.as_ref())?.total_tokens;
        let window = (*model_context_window)?;
        (used > 0 && window > 0).then_some(Usage { used, window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(thread: &str, used: u64, window: &str) -> String {
        format!(
            r#"{{"threadId":"{thread}","turnId":"t","tokenUsage":{{"total":{{"totalTokens":900}},"last":{{"totalTokens":{used}}},"modelContextWindow":{window}}}}}"#
        )
    }

    fn meta_of(used: u64, window: &str) -> Option<String> {
        let mut usages = Usages::default();
        usages.note("thread/tokenUsage/updated", &told("a", used, window));
        usages.of("a").map(|usage| usage.meta("gpt"))
    }

    #[test]
    fn the_last_answer_counts_with_two_decimals_and_never_beyond_the_window() {
        let meta = |used: u64, percentage: &str| {
            format!(r#"{{"modelId":"gpt","usedTokens":{used},"maxTokens":300,"percentage":{percentage}}}"#)
        };
        let sorted = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(sorted(&meta_of(49, "300").unwrap()), sorted(&meta(49, "16.33")));
        assert_eq!(sorted(&meta_of(300, "300").unwrap()), sorted(&meta(300, "100.0")));
        assert_eq!(sorted(&meta_of(301, "300").unwrap()), sorted(&meta(300, "100.0")));
    }

    #[test]
    fn nothing_is_said_without_a_window_or_without_tokens() {
        assert_eq!(meta_of(49, "null"), None);
        assert_eq!(meta_of(49, "0"), None);
        assert_eq!(meta_of(0, "300"), None);
    }

    #[test]
    fn the_thread_that_was_told_first_is_forgotten_beyond_the_limit() {
        let mut usages = Usages::default();
        for number in 0..=THREADS {
            usages.note("thread/tokenUsage/updated", &told(&number.to_string(), 1, "300"));
        }
        assert_eq!(usages.of("0"), None);
        assert!(usages.of("1").is_some());
        assert_eq!(usages.0.len(), THREADS);
    }
}
