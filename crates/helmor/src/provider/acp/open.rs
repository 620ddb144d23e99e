//! From a program to a session: the introduction, the login if one is wanted, and the session that is new or gone on with.

use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::rpc::{ErrorObject, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ear::Ear;
use super::files::Folders;
use super::link::{CallError, Link};
use super::options::Options;
use super::program::{self, AuthMethod, Key};
use super::{Flavour, Shared};
use crate::provider::process::Agent;
use crate::provider::slot::Slot;
use crate::provider::{Failure, FailureCode};

/// How long an agent may take to introduce itself. Some are fetched from the network by their start script.
const INTRODUCED_WITHIN: Duration = Duration::from_secs(60);

/// How long an agent may take to make or load a session. It may start servers of its own for it.
const SESSION_WITHIN: Duration = Duration::from_secs(60);

/// How long a login may take that needs nobody.
const LOGIN_WITHIN: Duration = Duration::from_secs(20);

/// What the protocol says when nobody is logged in.
const AUTH_REQUIRED: i64 = -32000;

/// An agent with an open session.
pub(super) struct Connection {
    pub(super) agent: Agent,
    pub(super) link: Arc<Link>,
    pub(super) ear: Arc<Ear>,
    pub(super) key: Key,
    pub(super) flavour: Flavour,
    pub(super) offers: Offers,
    /// The agent's name of the session.
    pub(super) session: String,
}

/// An open session, and whether it is the one that was wanted.
pub(super) struct Opened {
    pub(super) connection: Connection,
    /// Why what was to be gone on with is lost.
    pub(super) lost: Option<String>,
}

/// What an agent can do, by its introduction.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    pub(super) load: bool,
    pub(super) resume: bool,
    pub(super) images: bool,
    pub(super) directories: bool,
    pub(super) delete: bool,
    logins: Vec<AuthMethod>,
}

/// Starts the program and opens a session in it. Until that is done the program is in `slot`.
pub(super) async fn open(
    shared: &Shared,
    key: Key,
    name: String,
    resume: Option<&str>,
    slot: &Slot,
) -> Result<Opened, Failure> {
    let command = program::command(&shared.config.flavour, &key, name)?;
    let (agent, pipes) = slot.start(&shared.programs, command).await?;
    let folders =
        Folders::new(std::iter::once(&*key.cwd).chain(key.directories.iter().map(|folder| &**folder)));
    let ear = Arc::new(Ear::new(shared.config.flavour.family(), folders));
    let link = Link::start(pipes, Arc::clone(&ear));
    let opening = Opening { flavour: &shared.config.flavour, agent: &agent, link: &link, key: &key };
    let offers = opening.introduce().await?;
    let (session, options, lost) = opening.session(&offers, resume).await?;
    ear.change_options(|known| known.update(options));
    let connection =
        Connection { agent, link, ear, key, flavour: shared.config.flavour.clone(), offers, session };
    Ok(Opened { connection, lost })
}

struct Opening<'a> {
    flavour: &'a Flavour,
    agent: &'a Agent,
    link: &'a Link,
    key: &'a Key,
}

impl Opening<'_> {
    async fn introduce(&self) -> Result<Offers, Failure> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": false },
            "clientInfo": { "name": "outrigger", "title": "Outrigger", "version": env!("CARGO_PKG_VERSION") },
        });
        let answer = self.link.call_within(INTRODUCED_WITHIN, "initialize", &params).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(self.failed("introduce itself", error).await),
        };
        let read: Value = serde_json::from_str(answer.get()).unwrap_or_default();
        match read.get("protocolVersion").map(Value::as_u64) {
            Some(Some(1)) => {}
            version => {
                let version =
                    version.flatten().map_or_else(|| "none".to_owned(), |version| version.to_string());
                let message = format!(
                    "{} does not speak version 1 of the protocol: it speaks {version}",
                    self.flavour.title()
                );
                return Err(Failure::new(FailureCode::AgentProtocol, message));
            }
        }
        Ok(offers(&read))
    }

    /// Opens the session that is wanted, or a new one.
    async fn session(
        &self,
        offers: &Offers,
        resume: Option<&str>,
    ) -> Result<(String, Options, Option<String>), Failure> {
        let Some(wanted) = resume else {
            let (session, options) = self.new_session(offers).await?;
            return Ok((session, options, None));
        };
        let why = match self.go_on(offers, wanted).await {
            Ok(answer) => return Ok((wanted.to_owned(), Options::read(&answer), None)),
            Err(Lost::Session(why)) => why,
            Err(Lost::Everything(failure)) => return Err(failure),
        };
        let (session, options) = self.new_session(offers).await?;
        Ok((session, options, Some(why)))
    }

    async fn go_on(&self, offers: &Offers, wanted: &str) -> Result<Box<RawValue>, Lost> {
        // Both bring the session back; the first one does not repeat everything that was said.
        let ways = [("session/resume", offers.resume), ("session/load", offers.load)];
        let params = self.session_params(offers, Some(wanted));
        let mut why = format!("{} cannot load earlier sessions", self.flavour.title());
        for (method, _) in ways.into_iter().filter(|(_, offered)| *offered) {
            match self.call_logged_in(offers, method, &params).await {
                Ok(answer) => return Ok(answer),
                Err(Refusal::Words(error)) => why = said(&error),
                Err(Refusal::Failure(failure)) => return Err(Lost::Everything(failure)),
            }
        }
        Err(Lost::Session(why))
    }

    async fn new_session(&self, offers: &Offers) -> Result<(String, Options), Failure> {
        let params = self.session_params(offers, None);
        let answer = match self.call_logged_in(offers, "session/new", &params).await {
            Ok(answer) => answer,
            Err(Refusal::Words(error)) => return Err(refused(self.flavour, "make a session", &error)),
            Err(Refusal::Failure(failure)) => return Err(failure),
        };
        let named: NewSession = serde_json::from_str(answer.get()).map_err(|error| {
            let message = format!("{} made a session without a name: {error}", self.flavour.title());
            Failure::new(FailureCode::AgentProtocol, message)
        })?;
        Ok((named.session_id, Options::read(&answer)))
    }

    fn session_params(&self, offers: &Offers, session: Option<&str>) -> Value {
        let mut params = json!({ "cwd": self.key.cwd, "mcpServers": [] });
        if let Some(session) = session {
            params["sessionId"] = Value::from(session);
        }
        if offers.directories && !self.key.directories.is_empty() {
            params["additionalDirectories"] = json!(self.key.directories);
        }
        params
    }

    /// Calls, and if nobody is logged in, logs in where that needs nobody and calls again.
    async fn call_logged_in(
        &self,
        offers: &Offers,
        method: &str,
        params: &Value,
    ) -> Result<Box<RawValue>, Refusal> {
        let error = match self.link.call_within(SESSION_WITHIN, method, params).await {
            Ok(answer) => return Ok(answer),
            Err(CallError::Refused(error)) if error.code.0 == AUTH_REQUIRED => error,
            Err(CallError::Refused(error)) => return Err(Refusal::Words(error)),
            Err(other) => return Err(Refusal::Failure(self.failed("open a session", other).await)),
        };
        let logged_out = |why: String| Refusal::Failure(self.logged_out(offers, &why));
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let Some(login) = program::login(&offers.logins, is_set) else {
            return Err(logged_out(said(&error)));
        };
        match self.link.call_within(LOGIN_WITHIN, "authenticate", &json!({ "methodId": login })).await {
            Ok(_) => {}
            Err(CallError::Refused(error)) => return Err(logged_out(said(&error))),
            Err(CallError::Silent(_)) => return Err(logged_out("the login waits for somebody".to_owned())),
            Err(CallError::Gone) => {
                return Err(Refusal::Failure(self.failed("log in", CallError::Gone).await));
            }
        }
        match self.link.call_within(SESSION_WITHIN, method, params).await {
            Ok(answer) => Ok(answer),
            Err(CallError::Refused(error)) if error.code.0 == AUTH_REQUIRED => Err(logged_out(said(&error))),
            Err(CallError::Refused(error)) => Err(Refusal::Words(error)),
            Err(other) => Err(Refusal::Failure(self.failed("open a session", other).await)),
        }
    }

    fn logged_out(&self, offers: &Offers, why: &str) -> Failure {
        let help = match self.flavour {
            Flavour::Cursor { .. } => "Run `cursor-agent login`, or set CURSOR_API_KEY.".to_owned(),
            Flavour::Named { .. } => {
                let ways = offers.logins.iter().map(|login| {
                    let about =
                        login.description.as_ref().map_or_else(String::new, |about| format!(" ({about})"));
                    format!("{}{about}", login.name)
                });
                let ways: Vec<String> = ways.collect();
                if ways.is_empty() {
                    "Start the agent by itself once and log in there.".to_owned()
                } else {
                    format!("Log in with the agent itself; it offers: {}.", ways.join(", "))
                }
            }
        };
        Failure::new(FailureCode::Auth, format!("{} is not logged in: {why}. {help}", self.flavour.title()))
    }

    async fn failed(&self, what: &str, error: CallError) -> Failure {
        let title = self.flavour.title();
        match error {
            CallError::Refused(error) => refused(self.flavour, what, &error),
            CallError::Gone => self.agent.last_words(&format!("{title} ended before it could {what}")).await,
            CallError::Silent(after) => {
                let message = format!("{title} did not {what} within {after:?}");
                Failure::new(FailureCode::Timeout, self.agent.last_words(&message).await.message)
            }
        }
    }
}

/// Why a session is not the one that was wanted.
enum Lost {
    Session(String),
    Everything(Failure),
}

/// Why a call that opens a session has no answer.
enum Refusal {
    Words(ErrorObject),
    Failure(Failure),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    session_id: String,
}

fn offers(introduction: &Value) -> Offers {
    let yes = |pointer: &str| match introduction.pointer(pointer) {
        Some(Value::Bool(yes)) => *yes,
        Some(Value::Object(_)) => true,
        Some(_) | None => false,
    };
    let logins = introduction.get("authMethods").and_then(Value::as_array).into_iter().flatten();
    Offers {
        load: yes("/agentCapabilities/loadSession"),
        resume: yes("/agentCapabilities/sessionCapabilities/resume"),
        images: yes("/agentCapabilities/promptCapabilities/image"),
        directories: yes("/agentCapabilities/sessionCapabilities/additionalDirectories"),
        delete: yes("/agentCapabilities/sessionCapabilities/delete"),
        logins: logins.filter_map(auth_method).collect(),
    }
}

fn auth_method(method: &Value) -> Option<AuthMethod> {
    let text = |name: &str| method.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let id = text("id")?;
    let vars = method.get("vars").and_then(Value::as_array).into_iter().flatten();
    let vars = vars.filter_map(|var| Some(var.get("name")?.as_str()?.to_owned())).collect();
    Some(AuthMethod {
        name: text("name").unwrap_or_else(|| id.clone()),
        id,
        description: text("description"),
        vars,
    })
}

/// An agent says no. Its number says little, so its words are looked at, too.
pub(super) fn refused(flavour: &Flavour, what: &str, error: &ErrorObject) -> Failure {
    let words = said(error);
    let lower = words.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    // The status of an answer is a word of its own; `15003 tokens` is none.
    let status = lower.split(|char: char| !char.is_ascii_alphanumeric()).find_map(|word| match word {
        "401" | "403" => Some(FailureCode::Auth),
        "429" => Some(FailureCode::RateLimit),
        "500" | "502" | "503" | "504" | "529" => Some(FailureCode::Server),
        _ => None,
    });
    let word = if error.code.0 == AUTH_REQUIRED || has(&["unauthorized", "authentication", "not logged in"]) {
        FailureCode::Auth
    } else if let Some(status) = status {
        status
    } else if has(&["rate limit", "rate_limit", "quota"]) {
        FailureCode::RateLimit
    } else if has(&["overloaded", "server error"]) {
        FailureCode::Server
    } else if error.code.0 == code::INVALID_PARAMS.0 {
        FailureCode::InvalidRequest
    } else {
        FailureCode::Provider
    };
    Failure::new(word, format!("{} could not {what}: {words}", flavour.title()))
}

/// What an agent says with an error: its sentence, and the sentence in its details, where many keep the real one.
pub(super) fn said(error: &ErrorObject) -> String {
    let data: Option<Value> = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
    let details = data.as_ref().and_then(|data| match data {
        Value::String(text) => Some(text.as_str()),
        Value::Object(members) => {
            ["details", "message", "error"].iter().find_map(|name| members.get(*name)?.as_str())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    });
    match details {
        Some(details) if details != error.message => format!("{}: {details}", error.message),
        Some(_) | None => error.message.clone(),
    }
}
