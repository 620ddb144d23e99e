//! The events of Gemini.

use std::borrow::Cow;

use serde_json::json;

use crate::chat::Usage;
use crate::model::calls::{Arguments, Fragment};
use crate::model::dialect::Flow;
use crate::model::failure::{Failure, Voice};
use crate::model::json::Piece;
use crate::model::telling::Telling;

/// Reads Gemini.
#[derive(Debug, Default)]
pub(in crate::model) struct Decoder {
    /// How many calls came. Each comes whole.
    calls: u64,
}

impl Decoder {
    /// Reads one event.
    pub(in crate::model) fn event(
        &mut self,
        data: &str,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<Flow, Failure> {
        if data.trim() == "[DONE]" {
            return Ok(Flow::Done);
        }
        let event = Piece::read(data).map_err(|error| voice.no_json(data, &error))?;
        self.whole(event, told, voice)?;
        Ok(Flow::More)
    }

    /// Reads a piece of an answer, or all of it: there is no difference. A list is one after the other.
    pub(in crate::model) fn whole(
        &mut self,
        event: Piece<'_>,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<(), Failure> {
        if !event.is_object() {
            return event
                .items()
                .filter(|item| item.is_object())
                .try_for_each(|item| self.whole(item, told, voice));
        }
        if let Some(error) = event.get("error") {
            return Err(voice.error(error));
        }
        if let Some(used) = event.get("usageMetadata") {
            told.usage(usage(used));
        }
        let blocked = event.get("promptFeedback").and_then(|feedback| feedback.get("blockReason")?.string());
        if let Some(reason) = blocked {
            told.finish(reason);
        }
        let Some(candidate) = event.get("candidates").and_then(|candidates| candidates.items().next()) else {
            return Ok(());
        };
        let parts = candidate.get("content").and_then(|content| content.get("parts"));
        for part in parts.into_iter().flat_map(Piece::items) {
            self.part(part, told)?;
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Piece::string) {
            told.finish(reason);
        }
        Ok(())
    }

    fn part(&mut self, part: Piece<'_>, told: &mut Telling<'_>) -> Result<(), Failure> {
        if let Some(text) = part.get("text").and_then(Piece::string) {
            match part.get("thought").map(Piece::raw) {
                Some("true") => told.reasoning(text),
                Some(_) | None => told.delta(text),
            }
        }
        let Some(call) = part.get("functionCall") else { return Ok(()) };
        let text = |name: &str| call.get(name).and_then(Piece::string);
        let (id, name): (Option<Cow<'_, str>>, _) = (text("id"), text("name"));
        let arguments = call.get("args").map_or(Arguments::Nothing, |args| Arguments::Whole(args.raw()));
        told.call(Fragment { index: Some(self.calls), id: id.as_deref(), name: name.as_deref(), arguments })?;
        if let Some(signature) = part.get("thoughtSignature").and_then(Piece::string) {
            let item = json!({"type": "gemini.signature", "call": self.calls, "signature": signature});
            told.detail(&item.to_string())?;
        }
        self.calls += 1;
        Ok(())
    }
}

fn usage(used: Piece<'_>) -> Usage {
    let number = |name: &str| used.get(name).and_then(Piece::number).unwrap_or(0);
    let prompt = number("promptTokenCount").saturating_add(number("toolUsePromptTokenCount"));
    let completion = number("candidatesTokenCount").saturating_add(number("thoughtsTokenCount"));
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: used
            .get("totalTokenCount")
            .and_then(Piece::number)
            .unwrap_or(prompt.saturating_add(completion)),
        cached_prompt_tokens: number("cachedContentTokenCount"),
    }
}
