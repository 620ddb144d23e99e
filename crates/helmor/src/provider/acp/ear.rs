//! What an agent tells us and asks of us: updates for the host of the turn that runs, questions for its user, files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_wire::rpc::{ErrorObject, Id, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::ask::{Permission, Ruling};
use super::event::{self, Heard, Tools, renamed};
use super::files::Folders;
use super::link::Link;
use super::options::{Options, mode_of};
use super::request::{Request, file_outcome};
use crate::protocol::PermissionMode;
use crate::provider::{Desk, SlashCommand, Verdict};

/// How many questions of one agent may be open.
const QUESTIONS: usize = 64;

/// The longest part of a line that makes no sense which is worth a place in the log.
const LONGEST_GARBAGE: usize = 200;

/// What is told to a model whose plan was kept.
const PLAN_KEPT: &str = "The plan was captured and the user will decide. Stop here.";

/// One conversation's ear. It also remembers what holds beyond a turn.
pub(super) struct Ear {
    /// `cursor` or `acp`.
    family: &'static str,
    folders: Folders,
    places: Arc<Semaphore>,
    inner: Mutex<Inner>,
    /// Rung when something that holds beyond a turn has changed.
    pub(super) changed: tokio::sync::Notify,
}

struct Inner {
    stage: Option<Arc<Stage>>,
    lasting: Lasting,
}

/// What holds beyond a turn.
#[derive(Clone, Default)]
pub(super) struct Lasting {
    pub(super) options: Options,
    pub(super) commands: Option<Vec<SlashCommand>>,
    /// Tokens used, and the size of the window.
    pub(super) usage: Option<(u64, u64)>,
}

/// The turn that runs.
pub(super) struct Stage {
    /// The host's name of the session.
    pub(super) host_session: String,
    /// The agent's name of the session.
    pub(super) session: String,
    pub(super) desk: Arc<dyn Desk>,
    pub(super) stop: CancellationToken,
    mode: Mutex<PermissionMode>,
    tools: Mutex<Tools>,
    denied: AtomicBool,
}

impl Stage {
    pub(super) fn new(
        host_session: String,
        session: String,
        desk: Arc<dyn Desk>,
        stop: CancellationToken,
        mode: PermissionMode,
    ) -> Arc<Self> {
        let (mode, tools) = (Mutex::new(mode), Mutex::default());
        Arc::new(Self { host_session, session, desk, stop, mode, tools, denied: AtomicBool::new(false) })
    }

    /// Whether something was denied in this turn. Some agents take that for the end of it.
    pub(super) fn has_denied(&self) -> bool {
        self.denied.load(Ordering::Relaxed)
    }

    fn tools(&self) -> MutexGuard<'_, Tools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mode(&self) -> PermissionMode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_mode(&self, mode: PermissionMode) -> PermissionMode {
        std::mem::replace(&mut *self.mode.lock().unwrap_or_else(PoisonError::into_inner), mode)
    }
}

impl Ear {
    pub(super) fn new(family: &'static str, folders: Folders) -> Self {
        let inner = Inner { stage: None, lasting: Lasting::default() };
        let places = Arc::new(Semaphore::new(QUESTIONS));
        Self { family, folders, places, inner: Mutex::new(inner), changed: tokio::sync::Notify::new() }
    }

    /// From here on, this is the turn that is spoken of; `None`: there is none.
    pub(super) fn set_stage(&self, stage: Option<Arc<Stage>>) {
        self.inner().stage = stage;
    }

    /// The host wants another permission mode in the middle of a turn.
    pub(super) fn set_mode(&self, mode: PermissionMode) {
        if let Some(stage) = self.stage() {
            stage.set_mode(mode);
        }
    }

    /// What holds beyond a turn.
    pub(super) fn lasting(&self) -> Lasting {
        self.inner().lasting.clone()
    }

    /// Changes what can be chosen.
    pub(super) fn change_options(&self, change: impl FnOnce(&mut Options)) {
        change(&mut self.inner().lasting.options);
        self.changed.notify_waiters();
    }

    /// Waits until the host has read enough, or wants no more.
    pub(super) async fn room(&self) {
        if let Some(stage) = self.stage() {
            tokio::select! {
                biased;
                () = stage.stop.cancelled() => {}
                () = stage.desk.room() => {}
            }
        }
    }

    /// Something that is no message of the protocol.
    pub(super) fn garbage(&self, line: &str) {
        if let Some(stage) = self.stage() {
            let head: String = line.chars().take(LONGEST_GARBAGE).collect();
            stage.desk.log(&format!("the agent said something that is no message: {head}"));
        }
    }

    /// A notification.
    pub(super) fn note(&self, method: &str, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        if method == "session/update" {
            if let Ok(Updated { session_id, update }) = serde_json::from_str(params.get()) {
                self.update(&session_id, update);
            }
        } else if let (Some(kind), Some(stage)) = (method.strip_prefix("cursor/"), self.stage()) {
            stage.desk.pass(&renamed("cursor", kind, params));
        }
    }

    fn update(&self, session: &str, update: &RawValue) {
        let stage = match self.stage() {
            Some(stage) if stage.session == session => stage,
            // A part of the agent that has a session of its own.
            Some(_) => return,
            // Between turns, and while a session is loaded that repeats its history, only what lasts counts.
            None => return self.remember(event::hear(self.family, update, &mut Tools::default())),
        };
        let heard = event::hear(self.family, update, &mut stage.tools());
        match heard {
            Heard::Pass(objects) => objects.iter().for_each(|object| stage.desk.pass(object)),
            Heard::Mode(id) => self.mode_is(&stage, &id),
            Heard::Usage { used, size } => {
                self.remember(Heard::Usage { used, size });
                let model = self.inner().lasting.options.model.as_ref().map(|model| model.current.clone());
                let meta = event::usage_meta(model.as_deref(), used, size);
                let members =
                    [("sessionId", Value::from(stage.host_session.as_str())), ("meta", Value::from(meta))];
                stage.desk.tell("contextUsageUpdated", &members);
            }
            Heard::Options(options) => {
                if let Some(mode) = &options.mode {
                    self.mode_is(&stage, &mode.current);
                }
                self.remember(Heard::Options(options));
            }
            lasting @ (Heard::Commands(_) | Heard::Nothing) => self.remember(lasting),
        }
    }

    /// The agent is in this mode. If that is news, it changed by itself: what we chose is known before it is confirmed.
    fn mode_is(&self, stage: &Stage, id: &str) {
        let known = self.inner().lasting.options.mode.as_ref().map(|mode| mode.current.clone());
        if known.as_deref() == Some(id) {
            return;
        }
        self.remember(Heard::Mode(id.to_owned()));
        if let Some(mode) = mode_of(id)
            && stage.set_mode(mode) != mode
        {
            stage.desk.tell("permissionModeChanged", &[("permissionMode", Value::from(mode.word()))]);
        }
    }

    fn remember(&self, heard: Heard) {
        let mut inner = self.inner();
        let lasting = &mut inner.lasting;
        match heard {
            Heard::Commands(commands) => lasting.commands = Some(commands),
            Heard::Mode(id) => {
                if let Some(mode) = &mut lasting.options.mode {
                    mode.current = id;
                }
            }
            Heard::Options(options) => lasting.options.update(*options),
            Heard::Usage { used, size } => lasting.usage = Some((used, size)),
            Heard::Pass(_) | Heard::Nothing => return,
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// A request. It is answered by a task of its own, because what follows must be heard meanwhile.
    pub(super) fn request(
        ear: &Arc<Self>,
        link: &Arc<Link>,
        id: Id,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let Some(request) = Request::read(method, params) else {
            let error = ErrorObject::new(code::METHOD_NOT_FOUND, format!("`{method}` is not offered"));
            return link.answer_now(&id, &error);
        };
        let Ok(place) = Arc::clone(&ear.places).try_acquire_owned() else {
            let error =
                ErrorObject::new(code::INTERNAL_ERROR, format!("{QUESTIONS} questions are open already"));
            return link.answer_now(&id, &error);
        };
        let (ear, link, stage) = (Arc::clone(ear), Arc::clone(link), ear.stage());
        tokio::spawn(async move {
            let outcome = match request {
                Ok(request) => ear.answer(request, stage).await,
                Err(error) => Err(error),
            };
            link.answer(&id, outcome).await;
            drop(place);
        });
    }

    async fn answer(&self, request: Request, stage: Option<Arc<Stage>>) -> Result<Value, ErrorObject> {
        match request {
            Request::Permission(mut asked) => Ok(match stage {
                Some(stage) => {
                    stage.tools().complete(asked.tool_call_mut());
                    self.permission(&asked, &stage).await
                }
                None => asked.answer(None),
            }),
            Request::Questions(asked) => {
                let Some(stage) = stage else { return Ok(asked.answer(None)) };
                let mut question = stage.desk.ask_input(asked.ask(self.question_id()));
                let answer = tokio::select! {
                    biased;
                    () = stage.stop.cancelled() => None,
                    answer = question.answer() => answer,
                };
                Ok(asked.answer(answer.as_ref()))
            }
            Request::Plan { tool_call_id, plan } => Ok(match stage {
                Some(stage) => {
                    tell_plan(&stage, &tool_call_id, plan);
                    json!({ "outcome": { "outcome": "rejected", "reason": PLAN_KEPT } })
                }
                None => json!({ "outcome": { "outcome": "cancelled" } }),
            }),
            Request::Told { object } => {
                if let Some(stage) = stage {
                    stage.desk.pass(&object);
                }
                Ok(json!({}))
            }
            Request::Read { path, lines } => {
                let folders = self.folders.clone();
                let read = tokio::task::spawn_blocking(move || folders.read(&path, lines)).await;
                file_outcome(read).map(|text| json!({ "content": text }))
            }
            Request::Write { path, text } => {
                if stage.is_some_and(|stage| stage.mode() == PermissionMode::Plan) {
                    let error = "this turn is only to plan: nothing is written";
                    return Err(ErrorObject::new(code::INVALID_REQUEST, error));
                }
                let folders = self.folders.clone();
                let written = tokio::task::spawn_blocking(move || folders.write(&path, &text)).await;
                file_outcome(written).map(|()| json!({}))
            }
        }
    }

    async fn permission(&self, asked: &Permission, stage: &Stage) -> Value {
        let deny = || {
            stage.denied.store(true, Ordering::Relaxed);
            asked.answer(Some(&Verdict::Deny { message: None }))
        };
        match asked.ruling(stage.mode()) {
            Ruling::Allow => asked.answer(Some(&Verdict::Allow { updated: Vec::new() })),
            Ruling::Deny => deny(),
            Ruling::Plan => {
                tell_plan(stage, asked.tool_call_id(), asked.plan().map(ToOwned::to_owned));
                deny()
            }
            Ruling::Ask => {
                let mut question = stage.desk.ask_permission(asked.ask(self.question_id()));
                let verdict = tokio::select! {
                    biased;
                    // The protocol wants every question cancelled that is open when a turn is.
                    () = stage.stop.cancelled() => None,
                    verdict = question.answer() => verdict,
                };
                match verdict {
                    Some(Verdict::Deny { .. }) => deny(),
                    other => asked.answer(other.as_ref()),
                }
            }
        }
    }

    fn question_id(&self) -> String {
        format!("{}-{}", self.family, uuid())
    }

    fn stage(&self) -> Option<Arc<Stage>> {
        self.inner().stage.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell_plan(stage: &Stage, tool_call_id: &str, plan: Option<String>) {
    let members = [("toolUseId", Value::from(tool_call_id)), ("plan", plan.map_or(Value::Null, Value::from))];
    stage.desk.tell("planCaptured", &members);
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Updated<'a> {
    #[serde(borrow)]
    session_id: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    update: &'a RawValue,
}

/// A name that nothing else has.
fn uuid() -> String {
    let mut bytes = [0; 16];
    // Without randomness the name is still unlike most others, and the desk refuses none.
    let _ = getrandom::fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
