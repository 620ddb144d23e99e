//! The events of chat completions.

use std::borrow::Cow;

use crate::chat::Usage;
use crate::model::calls::{Arguments, Fragment};
use crate::model::dialect::Flow;
use crate::model::failure::{Failure, Voice};
use crate::model::json::{Piece, Scan};
use crate::model::telling::Telling;

/// Reads chat completions. It remembers nothing: every event says all.
#[derive(Debug, Default)]
pub(in crate::model) struct Decoder;

impl Decoder {
    /// Reads one event.
    #[inline]
    pub(in crate::model) fn event(
        data: &str,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<Flow, Failure> {
        if let Some(delta) = Delta::scan(data) {
            told.reasoning(delta.reasoning);
            told.delta(delta.content);
            return Ok(Flow::More);
        }
        Self::unusual_event(data, told, voice)
    }

    fn unusual_event(data: &str, told: &mut Telling<'_>, voice: Voice<'_>) -> Result<Flow, Failure> {
        if data.trim() == "[DONE]" {
            return Ok(Flow::Done);
        }
        let event = Piece::read(data).map_err(|error| voice.no_json(data, &error))?;
        Self::whole(event, told, voice)?;
        Ok(Flow::More)
    }

    /// Reads a chunk, or a whole answer: they differ in one name.
    pub(in crate::model) fn whole(
        event: Piece<'_>,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<(), Failure> {
        if let Some(error) = event.get("error") {
            return Err(voice.error(error));
        }
        if let Some(used) = event.get("usage") {
            told.usage(usage(used));
        }
        let is_first = |choice: &Piece<'_>| choice.get("index").and_then(Piece::number).unwrap_or(0) == 0;
        let Some(choice) = event.get("choices").and_then(|choices| choices.items().find(is_first)) else {
            return Ok(());
        };
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            read_delta(delta, told)?;
        }
        if let Some(used) = choice.get("usage") {
            told.usage(usage(used));
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Piece::string) {
            told.finish(reason);
        }
        Ok(())
    }
}

/// What nearly every chunk is: one choice with a piece of text and nothing else that matters.
struct Delta<'a> {
    content: Cow<'a, str>,
    reasoning: Cow<'a, str>,
}

impl<'a> Delta<'a> {
    #[inline]
    fn scan(data: &'a str) -> Option<Self> {
        let mut scan = Scan::new(data);
        let mut found: Option<Self> = None;
        scan.object(|scan, key| match key {
            "choices" if found.is_none() => scan.only_item(|scan| {
                found = Some(Self::choice(scan)?);
                Some(())
            }),
            "usage" | "error" => scan.null(),
            "choices" => None,
            _ => scan.skip_simple(),
        })?;
        scan.end()?;
        found
    }

    #[inline]
    fn choice(scan: &mut Scan<'a>) -> Option<Self> {
        let mut found = None;
        scan.object(|scan, key| match key {
            "delta" if found.is_none() => {
                found = Some(Self::texts(scan)?);
                Some(())
            }
            "index" => scan.exactly("0"),
            "finish_reason" | "usage" => scan.null(),
            "delta" | "message" => None,
            _ => scan.skip_simple(),
        })?;
        found
    }

    #[inline]
    fn texts(scan: &mut Scan<'a>) -> Option<Self> {
        let (mut content, mut reasoning) = (None, None);
        scan.object(|scan, key| match key {
            "content" if content.is_none() => {
                content = Some(scan.string()?);
                Some(())
            }
            "reasoning_content" | "reasoning" if reasoning.is_none() => {
                reasoning = Some(scan.string()?);
                Some(())
            }
            "role" => scan.skip_simple(),
            _ => scan.null(),
        })?;
        Some(Self { content: content.unwrap_or_default(), reasoning: reasoning.unwrap_or_default() })
    }
}

fn read_delta(delta: Piece<'_>, told: &mut Telling<'_>) -> Result<(), Failure> {
    let text = |name: &str| delta.get(name).and_then(Piece::string);
    if let Some(reasoning) = text("reasoning_content").or_else(|| text("reasoning")) {
        told.reasoning(reasoning);
    }
    for detail in delta.get("reasoning_details").into_iter().flat_map(Piece::items) {
        told.detail(detail.raw())?;
    }
    if let Some(content) = delta.get("content") {
        match content.string() {
            Some(text) => told.delta(text),
            None => content.items().for_each(|part| read_part(part, told)),
        }
    }
    if let Some(refusal) = text("refusal") {
        told.delta(refusal);
    }
    for call in delta.get("tool_calls").into_iter().flat_map(Piece::items) {
        let id = call.get("id").and_then(Piece::string);
        let index = call.get("index").and_then(Piece::number);
        read_call(index, id.as_deref(), call.get("function"), told)?;
    }
    // What tool calls were called before there could be more than one.
    if let Some(function) = delta.get("function_call") {
        read_call(Some(0), None, Some(function), told)?;
    }
    Ok(())
}

/// A part of a content that is a list: some servers put text and thoughts there.
fn read_part(part: Piece<'_>, told: &mut Telling<'_>) {
    if let Some(text) = part.get("text").and_then(Piece::string) {
        told.delta(text);
    }
    if let Some(thoughts) = part.get("thinking") {
        match thoughts.string() {
            Some(text) => told.reasoning(text),
            None => {
                for text in thoughts.items().filter_map(|thought| thought.get("text")?.string()) {
                    told.reasoning(text);
                }
            }
        }
    }
}

fn read_call(
    index: Option<u64>,
    id: Option<&str>,
    function: Option<Piece<'_>>,
    told: &mut Telling<'_>,
) -> Result<(), Failure> {
    let member = |name: &str| function.and_then(|function| function.get(name));
    let name = member("name").and_then(Piece::string);
    let given = member("arguments");
    let text = given.and_then(Piece::string);
    let arguments = match (&text, given) {
        (Some(text), _) => Arguments::More(text),
        (None, Some(whole)) => Arguments::Whole(whole.raw()),
        (None, None) => Arguments::Nothing,
    };
    told.call(Fragment { index, id, name: name.as_deref(), arguments })
}

fn usage(used: Piece<'_>) -> Usage {
    let number = |name: &str| used.get(name).and_then(Piece::number);
    let (prompt, completion) =
        (number("prompt_tokens").unwrap_or(0), number("completion_tokens").unwrap_or(0));
    let cached = used.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens"));
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: number("total_tokens").unwrap_or(prompt.saturating_add(completion)),
        cached_prompt_tokens: cached
            .and_then(Piece::number)
            .or_else(|| number("prompt_cache_hit_tokens"))
            .unwrap_or(0),
    }
}
