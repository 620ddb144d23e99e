//! What the tests of models share: a listener that writes down what it hears, and requests that lose patience quickly.

use std::time::Duration;

use outrigger_steerable::chat::{BoxFuture, Message, Role};
use outrigger_steerable::model::{Client, Event, Failure, Gone, Patience, Provider, Request, Sink, Summary};
use outrigger_steerable::net::Http;

/// Long enough for a busy machine, and nearly no wait between attempts.
pub(crate) const QUICK: Patience = Patience {
    connect: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    total: Duration::from_secs(60),
    attempts: 3,
    base_delay: Duration::from_millis(1),
    max_delay: Duration::from_millis(4),
    longest_retry_after: Duration::from_secs(180),
};

/// Writes down what it hears, one line an event.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) lines: Vec<String>,
    /// How many bytes of text were heard since the last flush, and the most there ever were.
    held: usize,
    pub(crate) most_held: usize,
    pub(crate) flushes: usize,
}

impl Sink for Heard {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Delta(text) | Event::Reasoning(text) = &event {
            self.held += text.len();
            self.most_held = self.most_held.max(self.held);
        }
        self.lines.push(line(&event));
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        self.held = 0;
        self.flushes += 1;
        Box::pin(async { Ok(()) })
    }
}

/// An event in one line.
pub(crate) fn line(event: &Event<'_>) -> String {
    match event {
        Event::Delta(text) => format!("says {text}"),
        Event::Reasoning(text) => format!("thinks {text}"),
        Event::Details(details) => format!("details {details}"),
        Event::ToolCall { call, unread: None } => {
            format!("calls {} {} {}", call.id, call.name, call.arguments)
        }
        Event::ToolCall { call, unread: Some(text) } => {
            format!("calls {} {} unread {text}", call.id, call.name)
        }
        Event::Usage(usage) => format!(
            "used {}+{}={} cached {}",
            usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, usage.cached_prompt_tokens
        ),
        Event::Finish(reason) => format!("ends {reason}"),
        Event::Retry { attempt, error, .. } => format!("retries {attempt} {}", error.kind.word()),
    }
}

/// A request that says hi to a chat completions server.
pub(crate) fn hi(base_url: &str, model: &str) -> Request {
    ask(Provider::ChatCompletions, base_url, model)
}

/// A request that says hi.
pub(crate) fn ask(provider: Provider, base_url: &str, model: &str) -> Request {
    let mut request = Request::new(provider, model, [Message::text(Role::User, "hi")]);
    request.base_url = Some(base_url.to_owned());
    request.patience = QUICK;
    request
}

/// Makes a call on a runtime of its own.
pub(crate) fn call(request: &Request) -> (Vec<String>, Result<Summary, Failure>) {
    let mut heard = Heard::default();
    let outcome = block_on(Client::new(Http::new()).stream(request, &mut heard));
    (heard.lines, outcome)
}

/// A call that must succeed: what was heard.
pub(crate) fn heard(request: &Request) -> Vec<String> {
    let (lines, outcome) = call(request);
    outcome.unwrap();
    lines
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
