//! The smallest useful sidecar: says the task back, word by word, and counts what it said.

use std::process::ExitCode;

use outrigger_abp::protocol::{Counts, Usage, UsageReport};
use outrigger_abp::sidecar::{Done, Identity, main as serve};

pub(crate) fn main() -> ExitCode {
    serve(Identity::named("echo"), |run| async move {
        run.started(&format!("{} characters to say", run.order().task.len())).await?;
        let words: Vec<&str> = run.order().task.split_whitespace().collect();
        for word in &words {
            run.delta(&format!("{word} ")).await?;
        }
        let usage = Usage { output_tokens: Some(words.len() as u64), ..Usage::default() };
        run.usage(UsageReport { usage, turns: Some(1), counts: Counts::Increments }).await?;
        run.message(&words.join(" ")).await?;
        run.completed("everything was said").await?;
        Ok(Done::as_it_went())
    })
}
