//! What each provider is asked, and how its answers are read.

use libtest_mimic::Trial;
use outrigger_steerable::chat::{Image, Message, Part, Role, Secret, ToolCall, ToolSpec};
use outrigger_steerable::model::{CacheMarks, FailureKind, Provider, Request};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model_kit::{ask, call, heard};
use crate::server::{Answer, Got, Server};
use crate::server_dialects::named;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        chat_completions_are_asked_in_their_words,
        an_ollama_without_a_path_is_asked_at_v1,
        options_of_the_host_win_over_ours,
        responses_are_asked_in_their_words,
        responses_tell_text_thoughts_and_calls,
        messages_are_asked_in_their_words,
        messages_get_no_cache_marks_when_the_host_says_so,
        messages_that_think_get_their_thoughts_back,
        messages_tell_text_thoughts_and_calls,
        gemini_is_asked_in_its_words,
        gemini_tells_text_thoughts_and_calls,
        errors_in_the_stream_of_any_dialect_are_failures,
        an_answer_that_ends_before_it_is_complete_is_a_failure,
    ]
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

/// A conversation with everything in it.
fn conversation(details: Option<Value>) -> Vec<Message> {
    let mut look = Message::text(Role::User, "Look");
    look.parts.push(Part::Image(Image::Data { media_type: "image/png".into(), base64: "AAAA".into() }));
    look.parts.push(Part::Image(Image::Url("https://example.org/a.png".into())));
    let mut calls = Message::text(Role::Assistant, "");
    let call = |id: &str, name: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: raw(&json!({"city": "Rome"})),
    };
    calls.tool_calls = vec![call("call_1", "get_weather"), call("call:2", "now")];
    calls.reasoning = Some("Hm".into());
    calls.reasoning_details = details.as_ref().map(raw);
    let result = |id: &str, text: &str| {
        let mut message = Message::text(Role::Tool, text);
        message.tool_call_id = Some(id.into());
        message
    };
    vec![
        Message::text(Role::System, "Be brief."),
        look,
        calls,
        result("call_1", "{\"degrees\":20}"),
        result("call:2", "noon"),
        Message::text(Role::User, "And?"),
    ]
}

fn asked(provider: Provider, details: Option<Value>, base: &str) -> Request {
    let mut request = ask(provider, base, "text");
    request.messages = conversation(details).into();
    request.api_key = Some(Secret::new("sk-key"));
    request.temperature = Some(0.5);
    request.max_tokens = Some(100);
    request.tools = vec![ToolSpec {
        name: "get_weather".into(),
        description: "The weather".into(),
        parameters: raw(&json!({"type": "object"})),
        as_given: None,
    }];
    request
}

/// What the server got of a request.
fn sent(server: &Server, request: &Request) -> Got {
    heard(request);
    server.requests().pop().unwrap()
}

fn chat_completions_are_asked_in_their_words() {
    let server = Server::scenarios();
    let mut request = asked(
        Provider::ChatCompletions,
        Some(json!([{"type": "reasoning.text", "text": "Hm"}])),
        &server.base_url(),
    );
    request.base_url = Some(format!("{}/", server.base_url()));
    request.reasoning_effort = Some("low".into());
    request.response_schema = Some(raw(&json!({"type": "object"})));
    let given = r#"{"type":"function","function":{"name":"now","parameters":{"n":1.0}}}"#;
    request.tools[0].as_given = Some(RawValue::from_string(given.to_owned()).unwrap());
    let got = sent(&server, &request);
    assert_eq!((got.method.as_str(), got.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(got.header("authorization"), Some("Bearer sk-key"));
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert!(String::from_utf8(got.body.clone()).unwrap().contains(given));
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"city\":\"Rome\"}"}});
    let expected = json!({
        "model": "text", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5, "max_tokens": 100,
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": {"name": "now", "parameters": {"n": 1.0}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [call("call_1", "get_weather"), call("call:2", "now")],
                "reasoning_content": "Hm", "reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]},
            {"role": "tool", "content": "{\"degrees\":20}", "tool_call_id": "call_1"},
            {"role": "tool", "content": "noon", "tool_call_id": "call:2"},
            {"role": "user", "content": "And?"},
        ],
    });
    assert_eq!(got.json(), expected);
}

fn an_ollama_without_a_path_is_asked_at_v1() {
    let server = Server::scenarios();
    assert_eq!(sent(&server, &ask(Provider::Ollama, &server.root(), "text")).path, "/v1/chat/completions");
    let elsewhere = format!("{}/proxy/v1", server.root());
    let got = sent(&server, &ask(Provider::Ollama, &elsewhere, "text"));
    assert_eq!(got.path, "/proxy/v1/chat/completions");
    assert_eq!(got.header("authorization"), None);
}

fn options_of_the_host_win_over_ours() {
    let server = Server::scenarios();
    let mut request = ask(Provider::ChatCompletions, &server.base_url(), "text");
    request.options = json!({"model": "length", "stream_options": null, "top_p": 0.25}).as_object().cloned();
    let got = sent(&server, &request).json();
    assert_eq!(
        (&got["model"], &got["stream_options"], &got["top_p"]),
        (&json!("length"), &json!(null), &json!(0.25))
    );
}

fn responses_are_asked_in_their_words() {
    let server = Server::scenarios();
    let thoughts = json!([{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "blob"}, {"type": "reasoning", "id": "rs_2", "summary": []}, {"type": "thinking"}]);
    let mut request = asked(Provider::Responses, Some(thoughts), &server.base_url());
    request.reasoning_effort = Some("high".into());
    request.response_schema = Some(raw(&json!({"type": "object"})));
    let got = sent(&server, &request);
    assert_eq!(got.path, "/v1/responses");
    assert_eq!(got.header("authorization"), Some("Bearer sk-key"));
    let call = |id: &str, name: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{\"city\":\"Rome\"}"});
    let expected = json!({
        "model": "text", "stream": true, "store": false, "temperature": 0.5, "max_output_tokens": 100,
        "reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "get_weather", "description": "The weather", "parameters": {"type": "object"}, "strict": false}],
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": false}},
        "input": [
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_image", "image_url": "https://example.org/a.png"},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "blob"},
            call("call_1", "get_weather"), call("call:2", "now"),
            {"type": "function_call_output", "call_id": "call_1", "output": "{\"degrees\":20}"},
            {"type": "function_call_output", "call_id": "call:2", "output": "noon"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]},
        ],
    });
    assert_eq!(got.json(), expected);
}

fn responses_tell_text_thoughts_and_calls() {
    let server = Server::scenarios();
    let ask = |model: &str| heard(&ask(Provider::Responses, &server.base_url(), model));
    assert_eq!(ask("text"), ["says Hello ", "says world", "ends stop", "used 40+9=49 cached 30"]);
    assert_eq!(ask("length"), ["says cut", "ends max_output_tokens", "used 40+9=49 cached 30"]);
    let lines = ask("tool");
    assert_eq!(lines[0], "thinks Where?");
    assert!(
        lines[1].starts_with("details [{\"") && lines[1].contains("\"encrypted_content\":\"blob\""),
        "{}",
        lines[1]
    );
    let expected =
        [r#"calls call_1 get_weather {"city":"Paris"}"#, "ends tool_calls", "used 40+9=49 cached 30"];
    assert_eq!(lines[2..], expected);
}

fn messages_are_asked_in_their_words() {
    let server = Server::scenarios();
    let request = asked(Provider::Messages, None, &server.root());
    let got = sent(&server, &request);
    assert_eq!(got.path, "/v1/messages");
    assert_eq!(got.header("x-api-key"), Some("sk-key"));
    assert_eq!(got.header("anthropic-version"), Some("2023-06-01"));
    let mark = json!({"type": "ephemeral"});
    let call =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"city": "Rome"}});
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]});
    let expected = json!({
        "model": "text", "stream": true, "max_tokens": 100, "temperature": 0.5,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "tools": [{"name": "get_weather", "description": "The weather", "input_schema": {"type": "object"}, "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            ]},
            {"role": "assistant", "content": [call("call_1", "get_weather"), call("call_2", "now")]},
            {"role": "user", "content": [
                result("call_1", "{\"degrees\":20}"), result("call_2", "noon"),
                {"type": "text", "text": "And?", "cache_control": mark},
            ]},
        ],
    });
    assert_eq!(got.json(), expected);
}

fn messages_get_no_cache_marks_when_the_host_says_so() {
    let server = Server::scenarios();
    let mut request = asked(Provider::Messages, None, &server.base_url());
    request.cache = CacheMarks::Omit;
    request.max_tokens = None;
    let got = sent(&server, &request);
    assert!(!String::from_utf8(got.body.clone()).unwrap().contains("cache_control"));
    assert_eq!(got.json()["max_tokens"], 16_384);
}

fn messages_that_think_get_their_thoughts_back() {
    let server = Server::scenarios();
    let thought = json!({"type": "thinking", "thinking": "Hm", "signature": "c2ln"});
    let mut request = asked(Provider::Messages, Some(json!([thought])), &server.root());
    request.reasoning_effort = Some("medium".into());
    request.max_tokens = Some(4_000);
    let got = sent(&server, &request).json();
    assert_eq!(got["thinking"], json!({"type": "enabled", "budget_tokens": 3_999}));
    assert_eq!(got["temperature"], json!(null));
    assert_eq!(got["messages"][1]["content"][0], thought);
    // Without the thoughts that led to the calls the model may not think on.
    let mut request = asked(Provider::Messages, None, &server.root());
    request.reasoning_effort = Some("medium".into());
    assert_eq!(sent(&server, &request).json()["thinking"], json!(null));
}

fn messages_tell_text_thoughts_and_calls() {
    let server = Server::scenarios();
    let ask = |model: &str| heard(&ask(Provider::Messages, &server.root(), model));
    assert_eq!(ask("text"), ["says Hello world", "ends end_turn", "used 13+9=22 cached 3"]);
    let expected = [
        "thinks Where is ",
        "thinks Paris?",
        r#"details [{"signature":"c2ln","thinking":"Where is Paris?","type":"thinking"}]"#,
        r#"calls toolu_1 get_weather {"city":"Paris"}"#,
        "calls toolu_2 now {}",
        "ends tool_use",
        "used 13+9=22 cached 3",
    ];
    assert_eq!(ask("tool"), expected);
}

fn gemini_is_asked_in_its_words() {
    let server = Server::scenarios();
    let signatures = json!([{"type": "gemini.signature", "call": 1, "signature": "c2ln"}]);
    let mut request = asked(Provider::Gemini, Some(signatures), &server.root());
    request.reasoning_effort = Some("low".into());
    let got = sent(&server, &request);
    assert_eq!(got.path, "/v1beta/models/text:streamGenerateContent?alt=sse");
    assert_eq!(got.header("x-goog-api-key"), Some("sk-key"));
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 100, "thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": true}},
        "tools": [{"functionDeclarations": [{"name": "get_weather", "description": "The weather", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [
            {"role": "user", "parts": [
                {"text": "Look"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"fileData": {"fileUri": "https://example.org/a.png"}},
            ]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}},
                {"functionCall": {"name": "now", "args": {"city": "Rome"}}, "thoughtSignature": "c2ln"},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "get_weather", "response": {"degrees": 20}}},
                {"functionResponse": {"name": "now", "response": {"output": "noon"}}},
                {"text": "And?"},
            ]},
        ],
    });
    assert_eq!(got.json(), expected);
}

fn gemini_tells_text_thoughts_and_calls() {
    let server = Server::scenarios();
    let ask = |model: &str| heard(&ask(Provider::Gemini, &server.root(), model));
    assert_eq!(ask("text"), ["says Hello ", "says world", "ends STOP", "used 12+12=24 cached 4"]);
    assert_eq!(ask("blocked"), ["ends SAFETY"]);
    let lines = ask("tool");
    assert_eq!(
        lines[..2],
        ["thinks Where?", r#"details [{"call":0,"signature":"c2ln","type":"gemini.signature"}]"#]
    );
    assert!(
        lines[2].starts_with("calls call_") && lines[2].ends_with(r#" get_weather {"city":"Paris"}"#),
        "{}",
        lines[2]
    );
    assert!(lines[3].ends_with(" now {}"), "{}", lines[3]);
    assert_eq!(lines[4..], ["ends STOP", "used 12+12=24 cached 4"]);
}

fn errors_in_the_stream_of_any_dialect_are_failures() {
    let server = Server::scenarios();
    let fail = |provider: Provider, base: &str| {
        let (lines, outcome) = call(&ask(provider, base, "errmid"));
        assert_eq!(lines, ["says part"]);
        let failure = outcome.unwrap_err();
        (failure.kind, failure.message)
    };
    let expect = |kind, message: &str| (kind, message.to_owned());
    assert_eq!(
        fail(Provider::Responses, &server.base_url()),
        expect(FailureKind::RateLimit, "openai-responses: error in the stream (rate_limit): Too fast")
    );
    assert_eq!(
        fail(Provider::Messages, &server.base_url()),
        expect(FailureKind::Server, "anthropic: error in the stream (server): Overloaded")
    );
    assert_eq!(
        fail(Provider::Gemini, &server.root()),
        expect(FailureKind::Server, "google: error in the stream (server): The model is overloaded.")
    );
}

fn an_answer_that_ends_before_it_is_complete_is_a_failure() {
    for (provider, first) in [
        (
            Provider::Messages,
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "part"}}),
        ),
        (Provider::Responses, json!({"type": "response.output_text.delta", "delta": "part"})),
    ] {
        let server = Server::start(move |_| Answer::events(named(&first)));
        let (lines, outcome) = call(&ask(provider, &server.base_url(), "x"));
        assert_eq!(lines, ["says part"]);
        let failure = outcome.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Transport);
        assert!(failure.message.ends_with(": the answer ended in the middle"), "{failure}");
    }
}
