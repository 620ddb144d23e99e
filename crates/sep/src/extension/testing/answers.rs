//! What the host for tests answers: as it is told, or as a real host would.

use outrigger_wire::rpc::{Code, ErrorObject, code};
use serde_json::{Value, json};

use super::MockHost;
use crate::extension::session::error;
use crate::protocol::{HostMethod, METHODS, V1_0, Version};

/// How a method is answered.
pub enum Scripted {
    /// With this result, every time.
    Always(Value),
    /// With an error of this code and these details, so often; then as usual.
    Fail {
        /// How often.
        times: u32,
        /// The code.
        code: i64,
        /// The details.
        data: Value,
    },
    /// Never.
    Silence,
    /// By what this makes of the params.
    With(Box<dyn FnMut(&Value) -> Value + Send>),
}

/// The answers of a host.
pub(super) struct Answers {
    host: MockHost,
    version: Version,
    sent: u32,
}

/// What is answered.
pub(super) enum Reply {
    /// This.
    Now(Result<Value, ErrorObject>),
    /// Nothing.
    Never,
}

impl Answers {
    pub(super) fn new(host: MockHost) -> Self {
        Self { host, version: V1_0, sent: 0 }
    }

    /// The session speaks this version.
    pub(super) fn agree(&mut self, version: Version) {
        self.version = version;
    }

    /// The answer to one request.
    pub(super) fn answer(&mut self, method: &str, params: &Value) -> Reply {
        match self.host.scripted.iter_mut().find(|(name, _)| name == method) {
            Some((_, Scripted::Always(result))) => return Reply::Now(Ok(result.clone())),
            Some((_, Scripted::Silence)) => return Reply::Never,
            Some((_, Scripted::With(make))) => return Reply::Now(Ok(make(params))),
            Some((_, Scripted::Fail { times, code, data })) if *times > 0 => {
                *times -= 1;
                let mut failure = ErrorObject::new(Code(*code), "as the test says");
                failure.data = serde_json::value::to_raw_value(data).ok();
                return Reply::Now(Err(failure));
            }
            Some((_, Scripted::Fail { .. })) | None => {}
        }
        Reply::Now(self.usual(method, params))
    }

    fn usual(&mut self, method: &str, params: &Value) -> Result<Value, ErrorObject> {
        let known = HostMethod::find(method);
        let Some(row) = METHODS.iter().find(|row| Some(row.method) == known) else {
            return Err(error(code::METHOD_NOT_FOUND, "method_not_found", "there is no such method"));
        };
        if !self.version.serves(row.since) {
            return Err(error(
                code::METHOD_NOT_FOUND,
                "method_not_found",
                "the session speaks an older version",
            ));
        }
        if row.permission.is_some_and(|needed| !self.host.permissions.contains(&needed)) {
            return Err(error(code::sep::PERMISSION_DENIED, "permission_denied", "not granted"));
        }
        Ok(match row.method {
            HostMethod::Attach => json!({"session": params["session"]}),
            HostMethod::GetCapabilities => self.capabilities(),
            HostMethod::MessagesSend => {
                self.sent += 1;
                json!({"messageHash": format!("{:064x}", self.sent), "state": "outbound", "deduplicated": false})
            }
            HostMethod::MessagesList => page("messages", &self.host.messages, params, 50),
            HostMethod::ContactsList => page("contacts", &self.host.contacts, params, 100),
            HostMethod::RegisterPanel => {
                json!({"panelKey": format!("org.example.mocked/{}", params["id"].as_str().unwrap_or_default())})
            }
            HostMethod::Toast => json!({"shown": true}),
            HostMethod::Subscribe => json!({"subscribed": params["topics"], "denied": []}),
            HostMethod::Unsubscribe => json!({"subscribed": [], "denied": []}),
            HostMethod::UpdatePanel | HostMethod::UnregisterPanel | HostMethod::Log => json!({}),
        })
    }

    fn capabilities(&self) -> Value {
        let methods: Vec<&str> = METHODS
            .iter()
            .filter(|row| self.version.serves(row.since))
            .map(|row| row.method.as_str())
            .collect();
        json!({
            "protocolVersion": self.version,
            "host": {"name": "mock", "version": env!("CARGO_PKG_VERSION")},
            "platform": {"profile": "desktop", "os": std::env::consts::OS, "arch": std::env::consts::ARCH},
            "extension": {"id": "org.example.mocked", "version": "1.0.0"},
            "trustLevel": "trusted_third_party",
            "permissions": {"granted": self.host.permissions, "denied": []},
            "methods": methods,
            "events": {"known": [], "subscribed": [], "denied": []},
            "limits": self.host.initialize()["limits"],
            "slots": ["tools.page.primary", "tools.page.secondary", "tools.page.advanced"],
            "sandbox": {"level": "off"},
            "features": [],
        })
    }
}

/// One page; the cursor is the number of the next entry.
fn page<T: serde::Serialize>(name: &str, all: &[T], params: &Value, usual: u64) -> Value {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let begin = params["cursor"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    let limit = number(params["limit"].as_u64().unwrap_or(usual));
    let found: Vec<&T> = all.iter().skip(begin).take(limit).collect();
    let end = begin + found.len();
    let next = (end < all.len()).then(|| end.to_string());
    json!({name: found, "nextCursor": next})
}
