//! What an extension can ask of its host, as functions with types. They wait for the answer.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::rpc::Id;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::error::HostError;
use super::session::Session;
use crate::protocol::{
    Capabilities, ContactJson, ContactPage, HostMethod, ListContacts, ListMessages, LogLevel, LogLine,
    MessageJson, MessagePage, PanelDraft, PanelPatch, PanelRegistered, SendMessage, SendResult, Toast,
    ToastResult, Topics, TopicsResult, UnregisterPanel, UpdatePanel, V1_0, V1_1, Version,
};

/// How long a call may take unless [`HostClient::within`] says otherwise: longer than a host takes for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message that an extension was given.
pub type Message = MessageJson<'static>;

/// A contact that an extension was given.
pub type Contact = ContactJson<'static>;

/// The host, to be asked from any thread. One that a handler was given stops asking when the host gives up what it was made for.
#[derive(Clone)]
pub struct HostClient {
    session: Arc<Session>,
    owner: Option<Id>,
    patience: Duration,
}

impl HostClient {
    pub(super) fn new(session: Arc<Session>, owner: Option<Id>) -> Self {
        Self { session, owner, patience: PATIENCE }
    }

    /// The same host, asked with this patience.
    #[must_use]
    pub fn within(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// The same host for work that outlives the handler: it is not given up with the request that the handler serves.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self { owner: None, ..self.clone() }
    }

    /// The version of this session.
    #[must_use]
    pub fn version(&self) -> Version {
        // Nobody is given a client before there is a version.
        self.session.version().unwrap_or(V1_0)
    }

    /// What this extension may do, and with what.
    pub fn get_capabilities(&self) -> Result<Capabilities, HostError> {
        self.ask(HostMethod::GetCapabilities, &serde_json::Map::new())
    }

    /// Sends a message. With a `client_message_id`, asking again does not send again.
    pub fn messages_send(&self, message: &SendMessage) -> Result<SendResult, HostError> {
        self.ask(HostMethod::MessagesSend, message)
    }

    /// One page of messages, newest first.
    pub fn messages_list(&self, query: &ListMessages) -> Result<MessagePage<'static>, HostError> {
        self.ask(HostMethod::MessagesList, query)
    }

    /// All messages that `query` asks for, newest first, page by page.
    #[must_use]
    pub fn messages(&self, query: ListMessages) -> Pages<ListMessages> {
        Pages { host: self.clone(), query: Some(query), page: VecDeque::new() }
    }

    /// One page of contacts.
    pub fn contacts_list(&self, query: &ListContacts) -> Result<ContactPage<'static>, HostError> {
        self.ask(HostMethod::ContactsList, query)
    }

    /// All contacts that `query` asks for, page by page.
    #[must_use]
    pub fn contacts(&self, query: ListContacts) -> Pages<ListContacts> {
        Pages { host: self.clone(), query: Some(query), page: VecDeque::new() }
    }

    /// Puts a panel into the tools page, or gives a panel of the manifest its actions.
    pub fn register_panel(&self, panel: &PanelDraft) -> Result<PanelRegistered, HostError> {
        self.ask(HostMethod::RegisterPanel, panel)
    }

    /// Changes a panel (since 1.1).
    pub fn update_panel(&self, id: &str, change: PanelPatch) -> Result<(), HostError> {
        self.ask(HostMethod::UpdatePanel, &UpdatePanel::new(id, change)).map(|_: serde::de::IgnoredAny| ())
    }

    /// Takes a panel away (since 1.1).
    pub fn unregister_panel(&self, id: &str) -> Result<(), HostError> {
        let panel = UnregisterPanel { id: id.to_owned() };
        self.ask(HostMethod::UnregisterPanel, &panel).map(|_: serde::de::IgnoredAny| ())
    }

    /// Shows a short notice.
    pub fn toast(&self, toast: &Toast) -> Result<ToastResult, HostError> {
        self.ask(HostMethod::Toast, toast)
    }

    /// Wants to hear about topics (since 1.1).
    pub fn subscribe(&self, topics: &[&str]) -> Result<TopicsResult, HostError> {
        self.ask(HostMethod::Subscribe, &self::topics(topics))
    }

    /// Does not want to hear about topics any more (since 1.1).
    pub fn unsubscribe(&self, topics: &[&str]) -> Result<TopicsResult, HostError> {
        self.ask(HostMethod::Unsubscribe, &self::topics(topics))
    }

    /// Writes a line to the extension's log. Before 1.1 there was no such call: then it goes to standard error, which the host
    /// logs too.
    pub fn log(&self, level: LogLevel, message: &str) -> Result<(), HostError> {
        if !self.version().serves(V1_1) {
            let _ = writeln!(std::io::stderr(), "{level}: {message}");
            return Ok(());
        }
        let line = LogLine { level, message: message.to_owned(), fields: serde_json::Map::new() };
        let method = HostMethod::Log.as_str();
        self.session.notify(method, Some(&*params(method, &line)?))
    }

    /// Calls any method, for hosts that know more than this kit.
    pub fn call<T: DeserializeOwned>(&self, method: &str, what: &impl Serialize) -> Result<T, HostError> {
        let params = params(method, what)?;
        let answer = self.session.call(method, Some(&*params), self.patience, self.owner.as_ref())?;
        serde_json::from_str(answer.get())
            .map_err(|error| HostError::Unreadable { method: method.to_owned(), why: error.to_string() })
    }

    fn ask<T: DeserializeOwned>(&self, method: HostMethod, what: &impl Serialize) -> Result<T, HostError> {
        self.call(method.as_str(), what)
    }
}

impl std::fmt::Debug for HostClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostClient").field("version", &self.session.version()).finish_non_exhaustive()
    }
}

/// What a query finds, page by page. After an error there is nothing more.
#[derive(Debug)]
pub struct Pages<Q: Query> {
    host: HostClient,
    /// What the next page is asked with, if there is one.
    query: Option<Q>,
    page: VecDeque<Q::Item>,
}

/// A question whose answer comes in pages.
pub trait Query: Sized {
    /// What is found.
    type Item;

    /// Asks for one page, and says how to ask for the next.
    fn page(self, host: &HostClient) -> Result<(Vec<Self::Item>, Option<Self>), HostError>;
}

impl Query for ListMessages {
    type Item = Message;

    fn page(self, host: &HostClient) -> Result<(Vec<Message>, Option<Self>), HostError> {
        let MessagePage { messages, next_cursor } = host.messages_list(&self)?;
        Ok((messages, next_cursor.map(|cursor| Self { cursor: Some(cursor), ..self })))
    }
}

impl Query for ListContacts {
    type Item = Contact;

    fn page(self, host: &HostClient) -> Result<(Vec<Contact>, Option<Self>), HostError> {
        let ContactPage { contacts, next_cursor } = host.contacts_list(&self)?;
        Ok((contacts, next_cursor.map(|cursor| Self { cursor: Some(cursor), ..self })))
    }
}

impl<Q: Query> Iterator for Pages<Q> {
    type Item = Result<Q::Item, HostError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.page.is_empty() {
            match self.query.take()?.page(&self.host) {
                Ok((found, next)) => (self.page, self.query) = (found.into(), next),
                Err(error) => return Some(Err(error)),
            }
        }
        self.page.pop_front().map(Ok)
    }
}

fn topics(topics: &[&str]) -> Topics {
    Topics { topics: topics.iter().map(|topic| (*topic).to_owned()).collect() }
}

fn params(method: &str, what: &impl Serialize) -> Result<Box<RawValue>, HostError> {
    to_raw_value(what)
        .map_err(|error| HostError::Unreadable { method: method.to_owned(), why: error.to_string() })
}
