//! The conversation with the node: from process to process, line by line, each thing into the file before the next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Request};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::line::{self, Hello, Line};
use super::talk::{self, Ask, Received, Said};
use crate::mesh::store::{
    Fault, News, Place, Store, Trouble, Waits, add_news, advance, is_blocked, name_of, state,
};
use crate::mesh::{
    Address, DeliveryState, Direction, MeshError, MeshEvent, Message, MessageHash, Outgoing, Refused, Sent,
};

/// How many sends may be without an answer.
const MAX_PENDING: usize = 256;

/// How many others are remembered as being there.
const MAX_PEERS: usize = 10_000;

/// How often it is looked who has fallen silent.
const LOOK_EVERY: Duration = Duration::from_secs(5);

type Answer = oneshot::Sender<Result<Sent, MeshError>>;

/// What somebody wants of the node.
#[derive(Debug)]
pub(super) enum Wish {
    Send { message: Outgoing, answer: Answer },
    Announce,
}

/// Speaks with the node as long as there is one.
pub(super) struct Conversation {
    store: Arc<Store>,
    wishes: mpsc::Receiver<Wish>,
    silent_after: Duration,
    /// Sends without an answer.
    pending: HashMap<u64, (Outgoing, Answer)>,
    next_id: u64,
    /// When others were last heard of.
    peers: BTreeMap<Address, Instant>,
}

impl Conversation {
    pub(super) fn new(store: Arc<Store>, wishes: mpsc::Receiver<Wish>, silent_after: Duration) -> Self {
        Self { store, wishes, silent_after, pending: HashMap::new(), next_id: 1, peers: BTreeMap::new() }
    }

    pub(super) async fn run(mut self, child: Child, first: Line) {
        let mut line = first;
        loop {
            self.settle().await;
            self.speak(&mut line).await;
            self.hang_up().await;
            drop(line);
            line = match self.next_line(&child).await {
                Some(next) => next,
                None => return,
            };
        }
    }

    /// The next process, when it has introduced itself as the same node. Until then nothing can be sent.
    async fn next_line(&mut self, child: &Child) -> Option<Line> {
        loop {
            let taken = async {
                let mut line = Line::take(child).await?;
                Some((line.hello().await, line))
            };
            tokio::pin!(taken);
            let (hello, line) = loop {
                tokio::select! {
                    taken = &mut taken => break taken?,
                    Some(wish) = self.wishes.recv() => {
                        if let Wish::Send { answer, .. } = wish {
                            let why = "the Reticulum node is being started again".to_owned();
                            let _ = answer.send(Err(MeshError::Unavailable { why }));
                        }
                    }
                }
            };
            if matches!(hello, Some(Ok(Hello { address, .. })) if address == self.store.me()) {
                return Some(line);
            }
        }
    }

    /// What was on its way when the last process ended: nobody will ever say more about it.
    async fn settle(&self) {
        let settled: Result<(), MeshError> = self
            .store
            .write(|turn| {
                let open: Vec<(MessageHash, DeliveryState)> = turn
                    .on
                    .prepare(
                        "SELECT hash, state FROM messages WHERE owner = ?1 AND incoming = 0
                         AND state IN ('generating', 'outbound', 'sending', 'sent')
                         AND NOT (state = 'sent' AND method = 'propagated') ORDER BY id",
                    )?
                    .query_map([turn.me], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<Result<_, _>>()?;
                for (hash, from) in open {
                    let has_left = matches!(from, DeliveryState::Sending | DeliveryState::Sent);
                    let to = if has_left { DeliveryState::Unknown } else { DeliveryState::Failed };
                    advance(turn.on, turn.me, hash, from, &[to])?;
                }
                Ok(())
            })
            .await;
        // A file that cannot be written says so to whoever asks next.
        let _ = settled;
    }

    async fn speak(&mut self, line: &mut Line) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                said = line::hear(&mut line.reader, &line.handle) => match said {
                    Some(said) => self.take(line, said).await,
                    None => return,
                },
                Some(wish) = self.wishes.recv(), if line.writer.is_some() => self.wish(line, wish).await,
                Some(request) = line.requests.recv() => match request {
                    // The end of its input is what the node leaves on.
                    Request::Leave { .. } => line.writer = None,
                    Request::Ping(_) => {}
                },
                _ = look.tick() => self.look().await,
            }
        }
    }

    async fn wish(&mut self, line: &mut Line, wish: Wish) {
        let (message, answer) = match wish {
            Wish::Announce => {
                line.ask(&Ask::Announce).await;
                return;
            }
            Wish::Send { message, answer } => (message, answer),
        };
        if self.pending.len() >= MAX_PENDING {
            let _ = answer.send(Err(MeshError::Refused(Refused::QueueFull)));
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        if line.ask(&Ask::send(id, &message)).await {
            self.pending.insert(id, (message, answer));
        } else {
            let why = "the Reticulum node does not take anything".to_owned();
            let _ = answer.send(Err(MeshError::Unavailable { why }));
        }
    }

    async fn take(&mut self, line: &mut Line, said: Said) {
        match said {
            Said::Accepted { id, hash, method, timestamp_ms } => {
                let Some((outgoing, answer)) = self.pending.remove(&id) else { return };
                let Ok(hash) = MessageHash::parse(&hash) else { return };
                let _ = answer.send(self.accepted(hash, &method, timestamp_ms, outgoing).await);
            }
            Said::Refused { id, reason } => self.answer(id, MeshError::Refused(talk::refused(&reason))),
            Said::Trouble { id, message } => self.answer(id, MeshError::Unavailable { why: message }),
            Said::State { hash, state } => {
                if let Ok(hash) = MessageHash::parse(&hash) {
                    self.moved(hash, talk::state(&state)).await;
                }
            }
            Said::Received(received) => self.received(line, received).await,
            Said::Announce { address, name, hops } => {
                if let Ok(address) = Address::parse(&address) {
                    self.heard(address, name, hops).await;
                }
            }
            Said::Ready { .. } | Said::Fatal { .. } | Said::Other => {}
        }
    }

    fn answer(&mut self, id: u64, error: MeshError) {
        if let Some((_, answer)) = self.pending.remove(&id) {
            let _ = answer.send(Err(error));
        }
    }

    async fn accepted(
        &self,
        hash: MessageHash,
        method: &str,
        timestamp_ms: u64,
        outgoing: Outgoing,
    ) -> Result<Sent, MeshError> {
        let message = Message {
            hash,
            source: self.store.me(),
            destination: outgoing.destination,
            direction: Direction::Outgoing,
            state: DeliveryState::Outbound,
            method: talk::method(method),
            title: outgoing.title.unwrap_or_default(),
            content: outgoing.content,
            lossy: false,
            attachments: Vec::new(),
            reply_to: outgoing.reply_to,
            timestamp_ms,
            rssi: None,
            snr: None,
            quality: None,
        };
        let kept = self.store.write(move |turn| {
            turn.keep(&message, Place { waits: Waits::No, number: None })?;
            add_news(turn.on, turn.me, &News::Sent(hash, DeliveryState::Outbound))?;
            Ok::<_, Fault<MeshError>>(())
        });
        kept.await.map(|()| Sent { hash, state: DeliveryState::Outbound })
    }

    async fn moved(&self, hash: MessageHash, to: DeliveryState) {
        let moved: Result<(), MeshError> = self
            .store
            .write(move |turn| {
                if let Some(from) = state(turn.on, turn.me, hash)?
                    && from != to
                {
                    advance(turn.on, turn.me, hash, from, &[to])?;
                }
                Ok(())
            })
            .await;
        // A file that cannot be written says so to whoever asks next.
        let _ = moved;
    }

    /// Keeps a message, and only then lets the node forget it.
    async fn received(&mut self, line: &mut Line, received: Received) {
        let Ok(message) = received.message() else { return };
        let (hash, source) = (message.hash, message.source);
        if let Some(last) = self.peers.get_mut(&source) {
            *last = Instant::now();
        }
        let kept: Result<(), Trouble> = self
            .store
            .write(move |turn| {
                if !is_blocked(turn.on, turn.me, source)?
                    && turn.keep(&message, Place { waits: Waits::No, number: None })?
                {
                    add_news(turn.on, turn.me, &News::Received(hash))?;
                }
                Ok(())
            })
            .await;
        if kept.is_ok() {
            line.ask(&Ask::Stored { hash }).await;
        }
    }

    async fn heard(&mut self, address: Address, name: Option<String>, hops: Option<u32>) {
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&address) {
            return;
        }
        if self.peers.insert(address, Instant::now()).is_some() {
            return;
        }
        let told: Result<(), MeshError> = self
            .store
            .write(move |turn| {
                let name = name_of(turn.on, turn.me, address)?.or(name);
                turn.tell(MeshEvent::Online { address, hops, name });
                Ok(())
            })
            .await;
        let _ = told;
    }

    /// Sees who has fallen silent.
    async fn look(&mut self) {
        let silent_after = self.silent_after;
        let silent: Vec<Address> = self
            .peers
            .iter()
            .filter(|(_, last)| last.elapsed() >= silent_after)
            .map(|(peer, _)| *peer)
            .collect();
        self.gone(silent).await;
    }

    async fn gone(&mut self, who: Vec<Address>) {
        if who.is_empty() {
            return;
        }
        self.peers.retain(|address, _| !who.contains(address));
        let told: Result<(), MeshError> = self
            .store
            .write(move |turn| {
                who.into_iter().for_each(|address| turn.tell(MeshEvent::Offline { address }));
                Ok(())
            })
            .await;
        let _ = told;
    }

    /// The process is gone: nobody answers, and nobody can be reached.
    async fn hang_up(&mut self) {
        for (_, (_, answer)) in self.pending.drain() {
            let why = "the Reticulum node ended; whether the message was sent is not known".to_owned();
            let _ = answer.send(Err(MeshError::Unavailable { why }));
        }
        let everybody = self.peers.keys().copied().collect();
        self.gone(everybody).await;
    }
}
