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
            "content" if content.is_none() => scan.null().or_else(|| {
                content = Some(scan.string()?);
                Some(())
            }),
            "reasoning_content" | "reasoning" if reasoning.is_none() => scan.null().or_else(|| {
                reasoning = Some(scan.string()?);
                Some(())
            }),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::time::Instant;

    use super::*;
    use crate::chat::BoxFuture;
    use crate::model::{Event, Gone, Provider, Sink};

    #[derive(Default)]
    struct Heard(Vec<String>);

    impl Sink for Heard {
        fn event(&mut self, event: Event<'_>) {
            self.0.push(format!("{event:?}"));
        }

        fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
            Box::pin(async { Ok(()) })
        }
    }

    const VOICE: Voice<'static> = Voice { provider: Provider::ChatCompletions, key: None };

    type Read = fn(&str, &mut Telling<'_>, Voice<'_>) -> Result<Flow, Failure>;

    fn heard(data: &str, read: Read) -> (Vec<String>, bool) {
        let mut heard = Heard::default();
        let mut told = Telling::new(&mut heard, Instant::now(), VOICE);
        let outcome = read(data, &mut told, VOICE);
        (heard.0, outcome.is_ok())
    }

    fn both_ways(data: &str) -> bool {
        let slow = heard(data, Decoder::unusual_event);
        assert_eq!(heard(data, Decoder::event), slow, "{data}");
        Delta::scan(data).is_some()
    }

    #[test]
    fn the_usual_chunks_take_the_short_way() {
        for data in [
            r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"é \"x\"\n\u00e9"},"finish_reason":null}]}"#,
            r#"{ "choices" : [ { "delta" : { "role":"assistant", "content":"a" } , "logprobs" : null } ] , "usage" : null }"#,
            r#"{"choices":[{"delta":{"content":null,"reasoning_content":"hm","tool_calls":null}}],"system_fingerprint":"fp","x":[],"y":{},"z":true}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":null}]}"#,
        ] {
            assert!(both_ways(data), "{data}");
        }
    }

    #[test]
    fn what_is_unusual_takes_the_long_way() {
        for data in [
            r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
            r#"{"choices":[{"index":00,"delta":{"content":"x"}}]}"#,
            r#"{"choices":[{"index":0.0,"delta":{"content":"x"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"text":"b"}]}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"error":{"message":"x"}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]} x"#,
            r#"{"choices":[{"delta":{"content":"a"}}],}"#,
            "{\"choices\":[{\"delta\":{\"content\":\"a\tb\"}}]}",
            r#"{"choices":[{"delta":{"content":"\x"}}]}"#,
            r#"{"choices":[{"delta":{"content":"\u12"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"n":01}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"n":-1}"#,
            r#"{"choices":[{"delta":{"content":"a"}}"#,
            "[DONE]",
            "",
        ] {
            assert!(!both_ways(data), "{data}");
        }
    }

    proptest! {
        #[test]
        fn both_ways_hear_the_same(
            words in proptest::collection::vec(proptest::sample::select(&[
                "{\"choices\":[", "{\"index\":0,", "{\"delta\":{", "\"content\":", "\"reasoning\":", "\"role\":", "\"a\"", "\"\\u00e9\"", "\"\\ud800\"",
                "null", "}", "]", "}}]}", ",", "\"usage\":", "\"error\":", "{}", "[]", "1", "0", ".5", "true", " ", "\"finish_reason\":",
            ][..]), 0..24),
        ) {
            both_ways(&words.concat());
        }

        #[test]
        fn both_ways_hear_the_same_of_a_chunk_with_one_byte_changed(at in 0..150_usize, byte in 0x20..0x7f_u8) {
            let mut chunk = br#"{"id":"chatcmpl-1","created":1700000000,"choices":[{"index":0,"delta":{"role":"assistant","content":"a\u00e9\n"},"finish_reason":null}],"usage":null}"#.to_vec();
            let at = at % chunk.len();
            chunk[at] = byte;
            both_ways(std::str::from_utf8(&chunk).unwrap());
        }
    }
}
