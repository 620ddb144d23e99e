//! Providers behind a proxy, and behind TLS that is none. Proxies come from the environment, so these are real processes.

use libtest_mimic::Trial;
use outrigger_steerable::model::FailureKind;
use serde_json::{Value, json};

use crate::model_kit::{call, hi};
use crate::server::Server;
use crate::sidecar_kit::Raw;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_provider_is_reached_through_the_proxy_of_the_environment,
        a_provider_that_needs_no_proxy_is_reached_without,
        a_provider_that_does_not_speak_tls_is_a_failure_of_transport,
    ]
}

/// What a sidecar with this environment says of a stream, and how it ends.
fn stream(env: &[(&str, &str)], base_url: &str) -> (String, Value) {
    let mut env = env.to_vec();
    env.extend([("http_proxy", ""), ("all_proxy", ""), ("ALL_PROXY", ""), ("no_proxy", "")]);
    let mut sidecar = Raw::spawn(&[], &env);
    assert_eq!(sidecar.hear()["method"], "lifecycle.ready");
    let messages = json!([{"role": "user", "content": "hi"}]);
    let params = json!({"provider": "openai", "model": "text", "baseUrl": base_url, "messages": messages});
    sidecar.call("agent.chat.stream", params);
    let mut said = String::new();
    loop {
        let heard = sidecar.hear();
        match heard["method"].as_str() {
            Some("stream.chunk") => said.push_str(heard["params"]["delta"].as_str().unwrap_or_default()),
            _ => return (said, heard["method"].clone()),
        }
    }
}

fn a_provider_is_reached_through_the_proxy_of_the_environment() {
    let proxy = Server::scenarios();
    let root = proxy.root();
    let (said, end) = stream(&[("HTTP_PROXY", &root), ("NO_PROXY", "")], "http://models.example/v1");
    assert_eq!((said.as_str(), end), ("Hello world", json!("stream.done")));
    let got = proxy.requests();
    assert_eq!(got[0].path, "http://models.example/v1/chat/completions");
    assert_eq!(got[0].header("host"), Some("models.example"));
}

fn a_provider_that_needs_no_proxy_is_reached_without() {
    let (proxy, provider) = (Server::scenarios(), Server::scenarios());
    let root = proxy.root();
    let env = [("HTTP_PROXY", root.as_str()), ("NO_PROXY", "127.0.0.1")];
    let (said, end) = stream(&env, &provider.base_url());
    assert_eq!((said.as_str(), end), ("Hello world", json!("stream.done")));
    assert_eq!((proxy.requests().len(), provider.requests().len()), (0, 1));
}

fn a_provider_that_does_not_speak_tls_is_a_failure_of_transport() {
    let server = Server::scenarios();
    let mut request = hi(&server.base_url().replace("http:", "https:"), "text");
    request.patience.attempts = 1;
    let failure = call(&request).1.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Transport, "{failure}");
    assert_eq!(server.requests().len(), 0);
}
