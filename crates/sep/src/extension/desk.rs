//! Reads what the host says, and hands it to whoever has to do with it. It never writes and never runs a handler, so that
//! nothing an author does keeps the next line from being read.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};

use outrigger_wire::line::{BlockingLineReader, Item, dialect};
use outrigger_wire::rpc::{self, EnvelopePolicy, ErrorObject, Id, Incoming, Message, code};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::api::{Extension, Lifecycle};
use super::client::HostClient;
use super::lanes::{Crowd, Lane, NotTaken, Work, guarded};
use super::link::Link;
use super::news::Event;
use super::session::{Outcome, Session, error};
use crate::protocol::{ActionCall, CANCEL, Dropped, ExtensionMethod, V1_0};

/// The longest line that is read: no host may send a longer frame.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// Events that may wait. Hosts keep a window that is far smaller.
const MAX_EVENTS: usize = 256;

/// Actions at the same time.
const MAX_ACTIONS: usize = 16;

/// What only the conductor may do.
pub(super) enum Control {
    /// The session shall begin.
    Initialize(Id, Value),
    /// The host wants to know whether we live.
    Ping(Id, Value),
    /// The host wants us to leave.
    Shutdown(Id, Value),
    /// These lines have to be written.
    Say(Vec<Vec<u8>>),
    /// This request has to be answered, and never began.
    Answer(Id, Outcome),
    /// `on_initialize` failed.
    NotConfigured(String),
    /// `on_shutdown` is through.
    SaidGoodbye,
    /// The channel is closed.
    Closed(String),
    /// The lifeline is cut: the host has gone.
    HostGone,
}

/// Everything that is needed to hand a request on.
pub(super) struct Desk {
    pub(super) extension: Arc<dyn Extension>,
    pub(super) session: Arc<Session>,
    pub(super) control: SyncSender<Control>,
    pub(super) events: Lane,
    /// `on_initialize` has returned.
    pub(super) ready: Arc<OnceLock<()>>,
    lifecycle: Lane,
    actions: Crowd,
}

impl Desk {
    pub(super) fn new(
        extension: Arc<dyn Extension>,
        session: Arc<Session>,
        control: SyncSender<Control>,
    ) -> Self {
        let events = Lane::new("sep-events", MAX_EVENTS);
        let lifecycle = Lane::new("sep-lifecycle", 16);
        let actions = Crowd::new("sep-action", MAX_ACTIONS);
        Self { extension, session, control, events, ready: Arc::default(), lifecycle, actions }
    }

    /// Reads until the channel is closed.
    pub(super) fn read(&self, link: Link) {
        let mut lines = BlockingLineReader::new(link, dialect::sep(MAX_LINE));
        let why = loop {
            match lines.next() {
                Ok(Some(Item::Line(line))) => match line.text() {
                    Ok(text) if !line.is_blank() => self.line(text),
                    Ok(_) | Err(_) => {}
                },
                Ok(Some(Item::TooLong(_) | Item::Defective(_))) => {
                    self.answer(
                        Id::null(),
                        Err(error(code::PARSE_ERROR, "parse_error", "the line cannot be read")),
                    );
                }
                Ok(None) => break "the host closed the channel".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        self.session.end(&why);
        self.tell(Control::Closed(why));
    }

    fn line(&self, text: &str) {
        let message = match rpc::parse(text, &EnvelopePolicy::SEP) {
            Ok(Incoming::One(message)) => message,
            // The policy knows no batches.
            Ok(Incoming::Batch(_)) => return,
            Err(refusal) if refusal.shape == rpc::Shape::Reply => return,
            Err(refusal) => {
                let id = refusal.id.clone().unwrap_or_else(Id::null);
                return self
                    .answer(id, Err(error(refusal.defect.code(), "invalid_request", refusal.to_string())));
            }
        };
        match message {
            Message::Request { id, method, params, .. } => self.request(id, &method, params),
            Message::Notification { method, params, .. } if method == CANCEL => self.cancelled(params),
            // A newer host may say things that this kit does not know.
            Message::Notification { .. } => {}
            Message::Response { id, result, .. } => {
                self.session.settle(&id, Ok(result.map_or_else(null, RawValue::to_owned)));
            }
            Message::Error { id: Some(id), error, .. } => self.session.settle(&id, Err(error)),
            // The host could not read something; it cannot say what, so whoever waits for it waits in vain.
            Message::Error { id: None, .. } => {}
        }
    }

    fn request(&self, id: Id, method: &str, params: Option<&RawValue>) {
        let params = params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null);
        let Ok(method) = ExtensionMethod::parse(method) else {
            let unknown = error(code::METHOD_NOT_FOUND, "method_not_found", "there is no such method");
            return self.answer(id, Err(unknown));
        };
        let has_begun = self.session.version().is_some();
        match method {
            ExtensionMethod::Event | ExtensionMethod::Action if !has_begun => {
                let early = error(code::sep::NOT_INITIALIZED, "not_initialized", "the session has not begun");
                self.answer(id, Err(early));
            }
            ExtensionMethod::Initialize => self.tell(Control::Initialize(id, params)),
            ExtensionMethod::Health => self.tell(Control::Ping(id, params)),
            ExtensionMethod::Shutdown => self.tell(Control::Shutdown(id, params)),
            ExtensionMethod::Event => self.event(id, params),
            ExtensionMethod::Action => self.action(id, params),
        }
    }

    fn event(&self, id: Id, params: Value) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            seq: u64,
            topic: String,
            #[serde(default)]
            time_ms: u64,
            #[serde(default)]
            data: Value,
            dropped: Option<Dropped>,
        }
        let Params { seq, topic, time_ms, data, dropped } = match serde_json::from_value(params) {
            Ok(params) => params,
            Err(why) => return self.answer(id, Err(bad_params(&why))),
        };
        let is_lifecycle = topic.starts_with("lifecycle.");
        let lane = if is_lifecycle { &self.lifecycle } else { &self.events };
        self.serve(
            &id,
            |work| lane.take(work),
            move |extension, host| {
                if is_lifecycle {
                    extension.on_lifecycle(host, &Lifecycle::new(&topic, data))?;
                } else {
                    extension.on_event(host, &Event { seq, topic, time_ms, data, dropped })?;
                }
                Ok(empty())
            },
        );
    }

    fn action(&self, id: Id, params: Value) {
        let call: ActionCall = match serde_json::from_value(params) {
            Ok(call) => call,
            Err(why) => return self.answer(id, Err(bad_params(&why))),
        };
        let version = self.session.version().unwrap_or(V1_0);
        let ready = self.ready.clone();
        self.serve(
            &id,
            |work| self.actions.take(work),
            move |extension, host| {
                ready.wait();
                let reply = guarded(|| extension.on_action(host, &call))
                    .unwrap_or_else(|trouble| super::api::ActionReply::error(&trouble.to_string()));
                Ok(to_raw_value(&reply.at(version))?)
            },
        );
    }

    /// Lets a handler answer a request, in whatever thread `take` finds for it.
    fn serve(
        &self,
        id: &Id,
        take: impl FnOnce(Work) -> Result<(), NotTaken>,
        handler: impl FnOnce(&dyn Extension, &HostClient) -> Result<Box<RawValue>, super::api::Trouble>
        + Send
        + 'static,
    ) {
        if self.session.begin(id).is_none() {
            return self
                .answer(Id::null(), Err(error(code::INVALID_REQUEST, "invalid_request", "duplicate id")));
        }
        let (extension, session, request) = (self.extension.clone(), self.session.clone(), id.clone());
        let taken = take(Box::new(move || {
            let host = HostClient::new(session.clone(), Some(request.clone()));
            let outcome = guarded(|| handler(&*extension, &host))
                .map_err(|trouble| error(code::INTERNAL_ERROR, "internal_error", trouble.to_string()));
            session.answer(&request, &outcome);
        }));
        if let Err(why) = taken {
            self.session.forget_request(id);
            let why = match why {
                NotTaken::Full => {
                    error(code::sep::TOO_MANY_INFLIGHT, "too_many_inflight", "too much waits already")
                }
                NotTaken::NoThread(why) => error(
                    code::INTERNAL_ERROR,
                    "internal_error",
                    format!("a thread could not be started: {why}"),
                ),
            };
            self.answer(id.clone(), Err(why));
        }
    }

    fn cancelled(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let id = params.and_then(|raw| serde_json::from_str::<Named<'_>>(raw.get()).ok()).and_then(|named| {
            let text = named.id.get();
            text.parse()
                .ok()
                .map(|number: u64| Id::from(number))
                .or_else(|| serde_json::from_str::<String>(text).ok().map(|text| Id::text(&text)))
        });
        let lines = id.map(|id| self.session.give_up(&id)).unwrap_or_default();
        if !lines.is_empty() {
            self.tell(Control::Say(lines));
        }
    }

    fn answer(&self, id: Id, outcome: Result<Box<RawValue>, ErrorObject>) {
        self.tell(Control::Answer(id, outcome));
    }

    /// Waits if the conductor is busy: then nothing more is read, and the host has to wait.
    fn tell(&self, control: Control) {
        let _ = self.control.send(control);
    }
}

/// The result that says nothing.
pub(super) fn empty() -> Box<RawValue> {
    to_raw_value(&serde_json::Map::new()).unwrap_or_else(|_| null())
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

fn bad_params(why: &serde_json::Error) -> ErrorObject {
    error(code::INVALID_PARAMS, "invalid_params", format!("the params are not what they should be: {why}"))
}
