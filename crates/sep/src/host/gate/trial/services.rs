//! Services that watch: nothing may be asked of them that is not granted and not recorded.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_wire::peer::BoxFuture;

use super::super::grants::{GrantSet, Reason};
use super::super::ports::{Listening, Log, Meter, NotRecorded, Offence, Recorded, Recorder};
use crate::host::events::Topic;
use crate::mesh::{
    Address, Contact, ContactQuery, DeliveryState, Direction, Ear, MeshError, Message, MessageHash,
    MessageQuery, Messaging, Method, Outgoing, Refused, Sent,
};
use crate::protocol::{DeniedTopic, HostMethod, LogLevel, Permission, Version};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A decision: about what, for which permission, why.
type Seen = (Option<HostMethod>, Option<Permission>, Reason);

/// Remembers every decision, and can refuse to.
#[derive(Debug, Default)]
pub(in super::super) struct Witness {
    seen: Mutex<Vec<Seen>>,
    down: AtomicBool,
}

impl Witness {
    /// Every decision so far.
    #[cfg(test)]
    pub(in super::super) fn seen(&self) -> Vec<Seen> {
        lock(&self.seen).clone()
    }

    /// Whether decisions can be recorded from now on.
    #[cfg(test)]
    pub(in super::super) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    fn allowed(&self, method: HostMethod) -> u64 {
        let allowed = |(known, _, reason): &&_| *known == Some(method) && *reason == Reason::Granted;
        lock(&self.seen).iter().filter(allowed).count() as u64
    }
}

impl Recorder for Witness {
    fn record(&self, decision: &Recorded<'_>) -> Result<(), NotRecorded> {
        if self.down.load(Ordering::Relaxed) {
            return Err(NotRecorded);
        }
        lock(&self.seen).push((decision.method, decision.permission, decision.reason));
        Ok(())
    }
}

/// Counts.
#[derive(Debug, Default)]
pub(in super::super) struct Numbers {
    /// `method code`, in the order in which they were answered; the code is 0 for a success.
    pub(in super::super) answered: Mutex<Vec<(String, i64)>>,
    pub(in super::super) offences: Mutex<Vec<Offence>>,
    pub(in super::super) denied: AtomicU64,
    pub(in super::super) inside: AtomicU64,
}

impl Meter for Numbers {
    fn rpc(&self, method: &str, _: Duration, code: Option<i64>) {
        lock(&self.answered).push((method.to_owned(), code.unwrap_or(0)));
    }

    fn denied(&self, _: &str, _: Permission) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    fn offence(&self, offence: Offence) {
        lock(&self.offences).push(offence);
    }

    fn entered(&self) {
        self.inside.fetch_add(1, Ordering::Relaxed);
    }

    fn left(&self) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The lines of a log.
#[derive(Debug, Default)]
pub(in super::super) struct Pages(pub(in super::super) Mutex<Vec<String>>);

impl Log for Pages {
    fn extension_says(&self, level: LogLevel, line: &str) {
        lock(&self.0).push(format!("ext {level} {line}"));
    }

    fn host_says(&self, level: LogLevel, line: &str) {
        lock(&self.0).push(format!("host {level} {line}"));
    }
}

/// How the network answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Behaviour {
    /// It takes messages.
    Take,
    /// It does not work.
    Fail,
    /// It refuses messages.
    Refuse(Refused),
    /// It never answers.
    Never,
}

/// A network that insists on permissions.
pub(in super::super) struct Mesh {
    grants: Arc<GrantSet>,
    witness: Arc<Witness>,
    behaviour: Mutex<Behaviour>,
    calls: Mutex<[u64; 3]>,
    pub(in super::super) sent: Mutex<Vec<Outgoing>>,
    pub(in super::super) messages: Mutex<Vec<Message>>,
    pub(in super::super) contacts: Mutex<Vec<Contact>>,
}

impl Mesh {
    pub(super) fn new(grants: Arc<GrantSet>, witness: Arc<Witness>) -> Self {
        Self {
            grants,
            witness,
            behaviour: Mutex::new(Behaviour::Take),
            calls: Mutex::new([0; 3]),
            sent: Mutex::new(Vec::new()),
            messages: Mutex::new((0..5).map(message).collect()),
            contacts: Mutex::new((1..4).map(contact).collect()),
        }
    }

    /// How it answers from now on.
    pub(in super::super) fn behave(&self, behaviour: Behaviour) {
        *lock(&self.behaviour) = behaviour;
    }

    /// Nothing is asked of it that is not granted now and was not recorded before.
    fn insist(&self, permission: Permission, method: HostMethod, which: usize) {
        assert_eq!(self.grants.decide(permission), Reason::Granted, "{permission} was used");
        let mut calls = lock(&self.calls);
        calls[which] += 1;
        assert!(calls[which] <= self.witness.allowed(method), "{method} was not recorded before it was done");
    }

    fn answer<T: Send + 'static>(&self, answer: T) -> BoxFuture<Result<T, MeshError>> {
        match *lock(&self.behaviour) {
            Behaviour::Take => Box::pin(async move { Ok(answer) }),
            Behaviour::Fail => {
                let why = "/secret/path: disk full".to_owned();
                Box::pin(async move { Err(MeshError::Unavailable { why }) })
            }
            Behaviour::Refuse(reason) => Box::pin(async move { Err(MeshError::Refused(reason)) }),
            Behaviour::Never => Box::pin(std::future::pending()),
        }
    }
}

impl Messaging for Mesh {
    fn own_address(&self) -> Address {
        Address([0xee; 16])
    }

    fn send(&self, message: Outgoing) -> BoxFuture<Result<Sent, MeshError>> {
        self.insist(Permission::MessagesSend, HostMethod::MessagesSend, 0);
        let mut sent = lock(&self.sent);
        sent.push(message);
        let hash = MessageHash([u8::try_from(sent.len() % 256).unwrap_or(0); 32]);
        self.answer(Sent { hash, state: DeliveryState::Outbound })
    }

    fn messages(&self, query: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>> {
        self.insist(Permission::MessagesRead, HostMethod::MessagesList, 1);
        let place = |message: &Message| (message.timestamp_ms, message.hash);
        let mut found = lock(&self.messages).clone();
        found.retain(|message| {
            query.peer.is_none_or(|peer| message.peer() == peer)
                && query.direction.is_none_or(|direction| message.direction == direction)
                && query.since_ms.is_none_or(|since| message.timestamp_ms >= since)
                && query.until_ms.is_none_or(|until| message.timestamp_ms <= until)
                && query.after.is_none_or(|after| place(message) < (after.timestamp_ms, after.hash))
        });
        found.sort_by_key(|message| std::cmp::Reverse(place(message)));
        found.truncate(query.limit);
        self.answer(found)
    }

    fn contacts(&self, query: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>> {
        self.insist(Permission::ContactsRead, HostMethod::ContactsList, 2);
        let mut found = lock(&self.contacts).clone();
        found.retain(|contact| {
            query.after.is_none_or(|after| contact.id > after)
                && query.text.as_ref().is_none_or(|text| contact.name.contains(text))
        });
        found.truncate(query.limit);
        self.answer(found)
    }

    fn listen(&self, _: Arc<dyn Ear>) {}
}

/// The `n`th message of the network.
pub(in super::super) fn message(n: u8) -> Message {
    let incoming = n.is_multiple_of(2);
    let (us, them) = (Address([0xee; 16]), Address([0x11; 16]));
    Message {
        hash: MessageHash([n; 32]),
        source: if incoming { them } else { us },
        destination: if incoming { us } else { them },
        direction: if incoming { Direction::Incoming } else { Direction::Outgoing },
        state: DeliveryState::Delivered,
        method: Method::Direct,
        title: String::new(),
        content: format!("message {n}"),
        lossy: false,
        attachments: Vec::new(),
        reply_to: None,
        timestamp_ms: 1_700_000_000_000 + u64::from(n),
        rssi: None,
        snr: None,
        quality: None,
    }
}

fn contact(n: u8) -> Contact {
    Contact {
        id: u64::from(n),
        name: format!("Contact {n}"),
        identity: Address([n; 16]),
        lxmf: Some(Address([n; 16])),
        lxst: None,
        created_ms: 1_700_000_000_000,
        updated_ms: 1_700_000_000_000 + u64::from(n),
    }
}

/// What an extension hears about.
pub(in super::super) struct Ears {
    grants: Arc<GrantSet>,
    wanted: Mutex<BTreeSet<&'static str>>,
    epoch: AtomicU64,
}

impl Ears {
    pub(super) fn new(grants: Arc<GrantSet>) -> Self {
        let wanted = Mutex::new(BTreeSet::from(["message.received", "peer.online"]));
        Self { grants, wanted, epoch: AtomicU64::new(0) }
    }

    fn judge(&self, topic: Topic) -> Reason {
        let needed = [Some(Permission::EventsSubscribe), topic.permission()];
        let mut reasons = needed.into_iter().flatten().map(|permission| self.grants.decide(permission));
        reasons.find(|reason| *reason != Reason::Granted).unwrap_or(Reason::Granted)
    }

    fn wanted(&self, version: Version) -> Vec<Topic> {
        let wanted = lock(&self.wanted);
        Topic::known(version).into_iter().filter(|topic| wanted.contains(topic.as_str())).collect()
    }
}

impl Listening for Ears {
    fn known(&self, version: Version) -> Vec<String> {
        Topic::known(version).into_iter().map(|topic| topic.as_str().to_owned()).collect()
    }

    fn subscribed(&self, version: Version) -> Vec<String> {
        let heard = |topic: &Topic| self.judge(*topic) == Reason::Granted;
        self.wanted(version).into_iter().filter(heard).map(|topic| topic.as_str().to_owned()).collect()
    }

    fn denied(&self, version: Version) -> Vec<DeniedTopic> {
        let denied = |topic: Topic| {
            let reason = Some(self.judge(topic)).filter(|reason| *reason != Reason::Granted)?;
            Some(DeniedTopic { topic: topic.as_str().to_owned(), reason: reason.as_str().to_owned() })
        };
        self.wanted(version).into_iter().filter_map(denied).collect()
    }

    fn subscribe(&self, version: Version, topics: &[String]) -> Vec<DeniedTopic> {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        let known = Topic::known(version);
        let judge = |name: &String| match known.iter().find(|topic| topic.as_str() == name) {
            None => Some("unknown_topic"),
            Some(topic) => {
                let reason = self.judge(*topic);
                if reason == Reason::Granted {
                    lock(&self.wanted).insert(topic.as_str());
                }
                Some(reason.as_str()).filter(|_| reason != Reason::Granted)
            }
        };
        let denied =
            |name: &String| Some(DeniedTopic { topic: name.clone(), reason: judge(name)?.to_owned() });
        topics.iter().filter_map(denied).collect()
    }

    fn unsubscribe(&self, topics: &[String]) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        lock(&self.wanted).retain(|known| !topics.iter().any(|topic| topic == known));
    }

    fn regrant(&self, _: &GrantSet) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }
}
