//! The lines of a script. They are written by people, so every mistake is named.

use std::time::Duration;

use super::{Act, Call, Chunk, Line};
use crate::chat::Usage;
use crate::model::calls::object;
use crate::model::failure::{Failure, FailureKind};
use crate::model::json::Piece;

/// What is wrong with a line.
type Problem = String;

impl Line {
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let line = Piece::read(text).map_err(|error| format!("no JSON: {error}"))?;
        if !line.is_object() {
            return Err("it must be an object".to_owned());
        }
        let when = line.get("when").map(|when| text_of(when, "when")).transpose()?;
        let act = match (line.get("chunks"), line.get("error")) {
            (Some(chunks), None) => {
                only(line, &["when", "chunks", "delayMs"])?;
                answer(line, chunks)?
            }
            (None, Some(error)) => {
                only(line, &["when", "error", "times"])?;
                fail(line, error)?
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err("it must have either `chunks` or `error`".to_owned());
            }
        };
        Ok(Self { when, act })
    }
}

fn answer(line: Piece<'_>, chunks: Piece<'_>) -> Result<Act, Problem> {
    if !chunks.raw().starts_with('[') {
        return Err("`chunks` must be an array".to_owned());
    }
    let chunks = chunks.items().map(chunk).collect::<Result<_, _>>()?;
    Ok(Act::Answer { delay: milliseconds(line, "delayMs")?, chunks })
}

fn fail(line: Piece<'_>, error: Piece<'_>) -> Result<Act, Problem> {
    only(error, &["kind", "message", "status", "retryAfterMs"])?;
    let word =
        error.get("kind").ok_or("`error.kind` is missing").map(|kind| text_of(kind, "error.kind"))??;
    let kind = FailureKind::from_word(&word).ok_or_else(|| format!("`error.kind` cannot be `{word}`"))?;
    let message =
        error.get("message").map_or_else(|| Ok(word.clone()), |message| text_of(message, "error.message"))?;
    let status = number(error, "status")?.map(u16::try_from).transpose();
    let retry_after = error.get("retryAfterMs").map(|_| milliseconds(error, "retryAfterMs")).transpose()?;
    let times = number(line, "times")?.map(u32::try_from).transpose();
    Ok(Act::Fail {
        failure: Failure {
            kind,
            message,
            status: status.map_err(|_| "`error.status` is too large")?,
            retry_after,
        },
        times: times.map_err(|_| "`times` is too large")?,
    })
}

fn chunk(chunk: Piece<'_>) -> Result<Chunk, Problem> {
    if !chunk.is_object() {
        return Err("a chunk must be an object".to_owned());
    }
    only(chunk, &["delta", "reasoningDelta", "toolCall", "usage", "finishReason", "sleepMs"])?;
    let text = |name: &str| chunk.get(name).map_or_else(|| Ok(String::new()), |value| text_of(value, name));
    Ok(Chunk {
        sleep: milliseconds(chunk, "sleepMs")?,
        reasoning: text("reasoningDelta")?,
        delta: text("delta")?,
        call: chunk.get("toolCall").map(call).transpose()?,
        finish: text("finishReason")?,
        usage: chunk.get("usage").map(usage).transpose()?,
    })
}

fn call(call: Piece<'_>) -> Result<Call, Problem> {
    only(call, &["id", "name", "arguments", "argumentsText"])?;
    let text =
        |name: &str| call.get(name).map(|value| text_of(value, &format!("toolCall.{name}"))).transpose();
    let arguments = match (text("argumentsText")?, call.get("arguments")) {
        (Some(text), _) => text,
        (None, None) => "{}".to_owned(),
        (None, Some(arguments)) => {
            object(arguments.raw()).ok_or("`toolCall.arguments` must be an object")?.get().to_owned()
        }
    };
    let name = text("name")?.filter(|name| !name.is_empty()).ok_or("`toolCall.name` is missing")?;
    Ok(Call { id: text("id")?.unwrap_or_default(), name, arguments })
}

fn usage(usage: Piece<'_>) -> Result<Usage, Problem> {
    only(usage, &["promptTokens", "completionTokens", "totalTokens", "cachedPromptTokens"])?;
    let prompt_tokens = number(usage, "promptTokens")?.unwrap_or(0);
    let completion_tokens = number(usage, "completionTokens")?.unwrap_or(0);
    Ok(Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: number(usage, "totalTokens")?
            .unwrap_or(prompt_tokens.saturating_add(completion_tokens)),
        cached_prompt_tokens: number(usage, "cachedPromptTokens")?.unwrap_or(0),
    })
}

fn only(object: Piece<'_>, known: &[&str]) -> Result<(), Problem> {
    match object.members().find(|(name, _)| !known.contains(&name.as_ref())) {
        Some((name, _)) => Err(format!("`{name}` is not one of {}", known.join(", "))),
        None => Ok(()),
    }
}

fn text_of(value: Piece<'_>, name: &str) -> Result<String, Problem> {
    value.string().map(std::borrow::Cow::into_owned).ok_or_else(|| format!("`{name}` must be a string"))
}

fn number(object: Piece<'_>, name: &str) -> Result<Option<u64>, Problem> {
    let whole =
        |value: Piece<'_>| value.raw().parse().map_err(|_| format!("`{name}` must be a whole number"));
    object.get(name).map(whole).transpose()
}

fn milliseconds(object: Piece<'_>, name: &str) -> Result<Duration, Problem> {
    number(object, name).map(|number| Duration::from_millis(number.unwrap_or(0)))
}
