//! The events of Messages.

use std::borrow::Cow;

use serde_json::json;

use crate::chat::Usage;
use crate::model::calls::{Arguments, Fragment};
use crate::model::dialect::Flow;
use crate::model::failure::{Failure, Voice};
use crate::model::json::{Piece, Scan};
use crate::model::telling::Telling;

/// Reads Messages.
#[derive(Debug, Default)]
pub(in crate::model) struct Decoder {
    /// The thoughts that are being thought.
    thinking: Option<Thinking>,
    tokens: Tokens,
}

#[derive(Debug, Default)]
struct Thinking {
    text: String,
    signature: String,
}

/// What the counts were when they were last told.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    input: u64,
    cache_read: u64,
    cache_written: u64,
    output: u64,
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
        // Not a word of this dialect, but servers that only imitate it bring it along.
        if data.trim() == "[DONE]" {
            return Ok(Flow::More);
        }
        let event = Piece::read(data).map_err(|error| voice.no_json(data, &error))?;
        let index = event.get("index").and_then(Piece::number);
        match event.get("type").and_then(Piece::string).as_deref() {
            Some("message_start") => {
                if let Some(used) = event.get("message").and_then(|message| message.get("usage")) {
                    self.count(used, told);
                }
            }
            Some("content_block_start") => {
                if let Some(block) = event.get("content_block") {
                    self.begin(block, index, told)?;
                }
            }
            Some("content_block_delta") => {
                if let Some(delta) = event.get("delta") {
                    self.delta(delta, index, told)?;
                }
            }
            Some("content_block_stop") => self.close(told)?,
            Some("message_delta") => {
                if let Some(used) = event.get("usage") {
                    self.count(used, told);
                }
                if let Some(reason) = event.get("delta").and_then(|delta| delta.get("stop_reason")?.string())
                {
                    told.finish(reason);
                }
            }
            Some("message_stop") => return Ok(Flow::Done),
            Some("error") => return Err(voice.error(event.get("error").unwrap_or(event))),
            Some(_) => {}
            None => {
                if let Some(error) = event.get("error") {
                    return Err(voice.error(error));
                }
            }
        }
        Ok(Flow::More)
    }

    /// Reads a whole answer.
    pub(in crate::model) fn whole(
        &mut self,
        message: Piece<'_>,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<(), Failure> {
        if let Some(error) = message.get("error") {
            return Err(voice.error(error));
        }
        for (index, block) in message.get("content").into_iter().flat_map(Piece::items).enumerate() {
            self.begin(block, Some(index as u64), told)?;
            self.close(told)?;
        }
        if let Some(used) = message.get("usage") {
            self.count(used, told);
        }
        if let Some(reason) = message.get("stop_reason").and_then(Piece::string) {
            told.finish(reason);
        }
        Ok(())
    }

    fn begin(&mut self, block: Piece<'_>, index: Option<u64>, told: &mut Telling<'_>) -> Result<(), Failure> {
        let text = |name: &str| block.get(name).and_then(Piece::string).unwrap_or_default();
        match text("type").as_ref() {
            "text" => told.delta(text("text")),
            "thinking" => {
                let thought = text("thinking");
                self.thinking =
                    Some(Thinking { text: thought.to_string(), signature: text("signature").into_owned() });
                told.reasoning(thought);
            }
            "redacted_thinking" => told.detail(block.raw())?,
            "tool_use" => {
                // A stream begins with an empty object and sends the text of the real one in pieces.
                let input = block.get("input").map_or("", Piece::raw);
                let is_empty = block.get("input").is_none_or(|input| input.members().next().is_none());
                let arguments = if is_empty { Arguments::Nothing } else { Arguments::Whole(input) };
                let (id, name) = (text("id"), text("name"));
                told.call(Fragment { index, id: Some(&id), name: Some(&name), arguments })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, delta: Piece<'_>, index: Option<u64>, told: &mut Telling<'_>) -> Result<(), Failure> {
        let text = |name: &str| delta.get(name).and_then(Piece::string).unwrap_or_default();
        match text("type").as_ref() {
            "text_delta" => told.delta(text("text")),
            "thinking_delta" => {
                let thought = text("thinking");
                let thinking = self.thinking.get_or_insert_default();
                thinking.text.push_str(&thought);
                told.check_size(thinking.text.len())?;
                told.reasoning(thought);
            }
            "signature_delta" => {
                let thinking = self.thinking.get_or_insert_default();
                thinking.signature.push_str(&text("signature"));
                told.check_size(thinking.signature.len())?;
            }
            "input_json_delta" => {
                let more = text("partial_json");
                told.call(Fragment { index, arguments: Arguments::More(&more), ..Fragment::default() })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A block ended. Thoughts that were signed have to come back with the message.
    fn close(&mut self, told: &mut Telling<'_>) -> Result<(), Failure> {
        match self.thinking.take() {
            Some(Thinking { text, signature }) if !signature.is_empty() => {
                let block = json!({"type": "thinking", "thinking": text, "signature": signature});
                told.detail(&block.to_string())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Counts come twice, and the second time mostly only what changed.
    fn count(&mut self, used: Piece<'_>, told: &mut Telling<'_>) {
        let known = self.tokens;
        let number = |name: &str, known: u64| used.get(name).and_then(Piece::number).unwrap_or(known);
        self.tokens = Tokens {
            input: number("input_tokens", known.input),
            cache_read: number("cache_read_input_tokens", known.cache_read),
            cache_written: number("cache_creation_input_tokens", known.cache_written),
            output: number("output_tokens", known.output),
        };
        let Tokens { input, cache_read, cache_written, output } = self.tokens;
        let prompt_tokens = input.saturating_add(cache_read).saturating_add(cache_written);
        told.usage(Usage {
            prompt_tokens,
            completion_tokens: output,
            total_tokens: prompt_tokens.saturating_add(output),
            cached_prompt_tokens: cache_read,
        });
    }
}

/// What nearly every event is.
fn text_delta(data: &str) -> Option<Cow<'_, str>> {
    let mut scan = Scan::new(data);
    let (mut text, mut kinds) = (None, 0);
    scan.object(|scan, key| match key {
        "type" => (scan.plain_string()? == "content_block_delta").then(|| kinds += 1),
        "index" => scan.skip_simple(),
        "delta" if text.is_none() => scan.object(|scan, key| match key {
            "type" => (scan.plain_string()? == "text_delta").then(|| kinds += 1),
            "text" if text.is_none() => {
                text = Some(scan.string()?);
                Some(())
            }
            _ => None,
        }),
        _ => None,
    })?;
    scan.end()?;
    text.filter(|_| kinds == 2)
}
