//! Which dialect a provider speaks: one place where all of them are named.

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::failure::{Failure, FailureKind, Voice};
use super::json::Piece;
use super::provider::Provider;
use super::request::Request;
use super::telling::Telling;
use super::{completions, gemini, messages, responses};

/// A request, ready to be sent as often as it takes.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) address: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Writes a request in its provider's dialect.
pub(super) fn write(request: &Request, voice: Voice<'_>) -> Result<Letter, Failure> {
    let (address, body) = match request.provider {
        Provider::ChatCompletions | Provider::Ollama => {
            (completions::address(request), completions::body(request)?)
        }
        Provider::Responses | Provider::Xai => (responses::address(request), responses::body(request)?),
        Provider::Messages => (messages::address(request), messages::body(request)?),
        Provider::Gemini => (gemini::address(request), gemini::body(request)?),
        Provider::Scripted => (String::new(), Vec::new()),
    };
    Ok(Letter { address, headers: headers(request, voice)?, body: body.into() })
}

fn headers(request: &Request, voice: Voice<'_>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if request.provider == Provider::Messages {
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
    }
    let Some(key) = request.api_key.as_ref().map(|key| key.reveal().trim()).filter(|key| !key.is_empty())
    else {
        return Ok(headers);
    };
    let (name, value) = match request.provider {
        Provider::Messages => (HeaderName::from_static("x-api-key"), key.to_owned()),
        Provider::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        Provider::ChatCompletions
        | Provider::Ollama
        | Provider::Responses
        | Provider::Xai
        | Provider::Scripted => (AUTHORIZATION, format!("Bearer {key}")),
    };
    let Ok(mut value) = HeaderValue::from_str(&value) else {
        return Err(voice.failure(FailureKind::Auth, "the key has characters that no header can carry"));
    };
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

/// Whether more events are to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// They are.
    More,
    /// The answer is complete.
    Done,
}

/// What a clean end of the body means if nothing said that the answer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BareEnd {
    /// That is how some servers end.
    Complete,
    /// Something is missing.
    Broken,
}

/// Reads the events of one answer.
#[derive(Debug)]
pub(super) enum Decoder {
    Completions,
    Responses(responses::Decoder),
    Messages(messages::Decoder),
    Gemini(gemini::Decoder),
}

impl Decoder {
    /// The reader for a provider's answer.
    pub(super) fn new(provider: Provider) -> Self {
        match provider {
            // A script is not read from events; it has no use for a reader.
            Provider::ChatCompletions | Provider::Ollama | Provider::Scripted => Self::Completions,
            Provider::Responses | Provider::Xai => Self::Responses(responses::Decoder::default()),
            Provider::Messages => Self::Messages(messages::Decoder::default()),
            Provider::Gemini => Self::Gemini(gemini::Decoder::default()),
        }
    }

    /// Reads the data of one event.
    #[inline]
    pub(super) fn event(
        &mut self,
        data: &str,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<Flow, Failure> {
        match self {
            Self::Completions => completions::Decoder::event(data, told, voice),
            Self::Responses(decoder) => decoder.event(data, told, voice),
            Self::Messages(decoder) => decoder.event(data, told, voice),
            Self::Gemini(decoder) => decoder.event(data, told, voice),
        }
    }

    /// Reads an answer that came whole although a stream was asked for.
    pub(super) fn whole(
        &mut self,
        body: Piece<'_>,
        told: &mut Telling<'_>,
        voice: Voice<'_>,
    ) -> Result<(), Failure> {
        match self {
            Self::Completions => completions::Decoder::whole(body, told, voice),
            Self::Responses(decoder) => decoder.whole(body, told, voice),
            Self::Messages(decoder) => decoder.whole(body, told, voice),
            Self::Gemini(decoder) => decoder.whole(body, told, voice),
        }
    }

    /// What it means if the body ends before the answer said that it is complete.
    pub(super) fn bare_end(&self) -> BareEnd {
        match self {
            Self::Completions | Self::Gemini(_) => BareEnd::Complete,
            Self::Responses(_) | Self::Messages(_) => BareEnd::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::chat::{Message, Role, Secret};

    fn letter(provider: Provider, base: &str, change: impl FnOnce(&mut Request)) -> Result<Letter, Failure> {
        let mut request = Request::new(provider, "m/1", [Message::text(Role::User, "hi")]);
        request.base_url = Some(base.to_owned());
        change(&mut request);
        write(&request, Voice { provider, key: None })
    }

    #[test]
    fn every_provider_is_asked_at_home_or_where_the_host_says() {
        for (provider, base, expected) in [
            (Provider::ChatCompletions, " ", "https://api.openai.com/v1/chat/completions"),
            (Provider::ChatCompletions, "http://h/x//", "http://h/x/chat/completions"),
            (Provider::Ollama, "", "http://127.0.0.1:11434/v1/chat/completions"),
            (Provider::Ollama, "http://h:1/", "http://h:1/v1/chat/completions"),
            (Provider::Ollama, "http://h:1/v1", "http://h:1/v1/chat/completions"),
            (Provider::Responses, "", "https://api.openai.com/v1/responses"),
            (Provider::Xai, "", "https://api.x.ai/v1/responses"),
            (Provider::Messages, "", "https://api.anthropic.com/v1/messages"),
            (Provider::Messages, "http://h/v1/", "http://h/v1/messages"),
            (Provider::Messages, "http://h", "http://h/v1/messages"),
            (
                Provider::Gemini,
                "",
                "https://generativelanguage.googleapis.com/v1beta/models/m%2F1:streamGenerateContent?alt=sse",
            ),
            (Provider::Gemini, "http://h/v1", "http://h/v1/models/m%2F1:streamGenerateContent?alt=sse"),
        ] {
            assert_eq!(letter(provider, base, |_| {}).unwrap().address, expected);
        }
    }

    #[test]
    fn openai_itself_is_told_the_most_tokens_under_their_new_name() {
        let member = |base: &str, name: &str| {
            let letter =
                letter(Provider::ChatCompletions, base, |request| request.max_tokens = Some(7)).unwrap();
            serde_json::from_slice::<Value>(&letter.body).unwrap()[name].as_u64()
        };
        assert_eq!(member("", "max_completion_tokens"), Some(7));
        assert_eq!(member("", "max_tokens"), None);
        assert_eq!(member("http://h/v1", "max_tokens"), Some(7));
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_without_being_shown() {
        let failure =
            letter(Provider::Messages, "", |request| request.api_key = Some(Secret::new("sk-\nsecret")))
                .unwrap_err();
        assert_eq!(failure.kind, FailureKind::Auth);
        assert_eq!(failure.message, "anthropic: the key has characters that no header can carry");
    }

    #[test]
    fn a_key_is_not_in_what_is_shown_of_a_letter() {
        let letter =
            letter(Provider::Gemini, "", |request| request.api_key = Some(Secret::new("sk-secret"))).unwrap();
        assert!(!format!("{letter:?}").contains("sk-secret"));
    }
}
