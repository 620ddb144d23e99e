//! The events of Responses.

use std::borrow::Cow;

use crate::chat::Usage;
use crate::model::calls::{Arguments, Fragment};
use crate::model::dialect::Flow;
use crate::model::failure::{Failure, FailureKind, Voice};
use crate::model::json::{Piece, Scan};
use crate::model::telling::Telling;

/// Reads Responses.
#[derive(Debug, Default)]
pub(in crate::model) struct Decoder {
    /// Whether the answer calls tools: this dialect has no finish reason of its own to say so.
    has_calls: bool,
}

impl Decoder {
    /// Reads one event.
    pub(in crate::model) fn event(
        &mut self,
        data: &str,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<Flow, Failure> {
        if let Some(text) = text_delta(data) {
            told.delta(text);
            return Ok(Flow::More);
        }
        if data.trim() == "[DONE]" {
            return Ok(Flow::More);
        }
        let event = Piece::read(data).map_err(|error| voice.no_json(data, &error))?;
        let kind = event.get("type").and_then(Piece::string).unwrap_or_default();
        let delta = || event.get("delta").and_then(Piece::string).unwrap_or_default();
        let index = event.get("output_index").and_then(Piece::number);
        match kind.as_ref() {
            "response.output_text.delta" | "response.refusal.delta" => told.delta(delta()),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                told.reasoning(delta())
            }
            // A summary comes in paragraphs, and nothing else says where one ends.
            "response.reasoning_summary_part.added" if is_later(event) => {
                told.reasoning(Cow::Borrowed("\n\n"))
            }
            "response.output_item.added" => {
                if let Some(item) = event.get("item") {
                    self.call(item, index, Completeness::Begun, told)?;
                }
            }
            "response.function_call_arguments.delta" => {
                let arguments = delta();
                told.call(Fragment { index, arguments: Arguments::More(&arguments), ..Fragment::default() })?;
            }
            "response.function_call_arguments.done" => {
                if let Some(arguments) = event.get("arguments").and_then(Piece::string) {
                    told.call(Fragment {
                        index,
                        arguments: Arguments::Whole(&arguments),
                        ..Fragment::default()
                    })?;
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    self.item(item, index, told)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                if let Some(response) = event.get("response") {
                    self.end(response, told, voice)?;
                }
                return Ok(Flow::Done);
            }
            "error" => return Err(voice.error(event.get("error").unwrap_or(event))),
            _ if kind.is_empty() && event.get("error").is_some() => {
                return Err(voice.error(event.get("error").unwrap_or(event)));
            }
            // Much is only told for those who draw progress.
            _ => {}
        }
        Ok(Flow::More)
    }

    /// Reads a whole answer.
    pub(in crate::model) fn whole(
        &mut self,
        response: Piece<'_>,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<(), Failure> {
        for (index, item) in response.get("output").into_iter().flat_map(Piece::items).enumerate() {
            for part in item.get("content").into_iter().flat_map(Piece::items) {
                let text = part.get("text").or_else(|| part.get("refusal")).and_then(Piece::string);
                told.delta(text.unwrap_or_default());
            }
            for part in item.get("summary").into_iter().flat_map(Piece::items) {
                told.reasoning(part.get("text").and_then(Piece::string).unwrap_or_default());
            }
            self.item(item, Some(index as u64), told)?;
        }
        self.end(response, told, voice)
    }

    /// An item that is complete: a call, or thoughts to send back.
    fn item(&mut self, item: Piece<'_>, index: Option<u64>, told: &mut Telling<'_>) -> Result<(), Failure> {
        match item.get("type").and_then(Piece::string).as_deref() {
            Some("reasoning") => told.detail(item.raw()),
            Some(_) | None => self.call(item, index, Completeness::Complete, told),
        }
    }

    fn call(
        &mut self,
        item: Piece<'_>,
        index: Option<u64>,
        completeness: Completeness,
        told: &mut Telling<'_>,
    ) -> Result<(), Failure> {
        if item.get("type").and_then(Piece::string).as_deref() != Some("function_call") {
            return Ok(());
        }
        self.has_calls = true;
        let text = |name: &str| item.get(name).and_then(Piece::string);
        let (id, name, arguments) = (text("call_id").or_else(|| text("id")), text("name"), text("arguments"));
        let arguments = match (completeness, &arguments) {
            (_, None) => Arguments::Nothing,
            (Completeness::Begun, Some(begun)) => Arguments::More(begun),
            (Completeness::Complete, Some(all)) => Arguments::Whole(all),
        };
        told.call(Fragment { index, id: id.as_deref(), name: name.as_deref(), arguments })
    }

    fn end(&self, response: Piece<'_>, told: &mut Telling<'_>, voice: Voice<'_>) -> Result<(), Failure> {
        if let Some(error) = response.get("error") {
            return Err(voice.error(error));
        }
        if let Some(used) = response.get("usage") {
            told.usage(usage(used));
        }
        let text = |name: &str| response.get(name).and_then(Piece::string);
        let why = response.get("incomplete_details").and_then(|details| details.get("reason")?.string());
        match text("status").as_deref() {
            Some("failed" | "cancelled") => {
                return Err(voice.failure(FailureKind::Server, "the response failed without saying why"));
            }
            Some("incomplete") => told.finish(why.unwrap_or(Cow::Borrowed("incomplete"))),
            Some(_) | None => told.finish(Cow::Borrowed(if self.has_calls { "tool_calls" } else { "stop" })),
        }
        Ok(())
    }
}

/// Whether a part is not the first of its summary.
fn is_later(event: Piece<'_>) -> bool {
    event.get("summary_index").and_then(Piece::number).is_some_and(|number| number > 0)
}

/// Whether an item has just begun, or is all there.
#[derive(Clone, Copy)]
enum Completeness {
    Begun,
    Complete,
}

/// What nearly every event is.
fn text_delta(data: &str) -> Option<Cow<'_, str>> {
    let mut scan = Scan::new(data);
    let (mut is_text, mut text) = (false, None);
    scan.object(|scan, key| match key {
        "type" => {
            is_text = scan.plain_string()? == "response.output_text.delta";
            is_text.then_some(())
        }
        "delta" if text.is_none() => {
            text = Some(scan.string()?);
            Some(())
        }
        "delta" => None,
        _ => scan.skip_simple(),
    })?;
    scan.end()?;
    text.filter(|_| is_text)
}

fn usage(used: Piece<'_>) -> Usage {
    let number = |name: &str| used.get(name).and_then(Piece::number).unwrap_or(0);
    let (prompt, completion) = (number("input_tokens"), number("output_tokens"));
    let cached = used.get("input_tokens_details").and_then(|details| details.get("cached_tokens"));
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: used
            .get("total_tokens")
            .and_then(Piece::number)
            .unwrap_or(prompt.saturating_add(completion)),
        cached_prompt_tokens: cached.and_then(Piece::number).unwrap_or(0),
    }
}
