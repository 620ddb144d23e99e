//! How a message gets from one node to another: the sender puts it into the file, the receiver takes it.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::presence::{Presence, Sign, Verdict};
use super::{EmbeddedBounds, Line, Node, SpeakError, Standing};
use crate::mesh::store::{
    self, Belfry, Fault, More, News, Occasion, Place, Ring, Rounds, Turn, Waits, add_news, advance,
    is_blocked, set,
};
use crate::mesh::{
    Address, DeliveryState, Direction, MeshError, MeshEvent, Message, MessageHash, Method, Outgoing, Refused,
    Sent,
};

/// How many messages are taken in one transaction.
const TAKE: usize = 64;

/// The regular work of a node: take what came, show that it lives, see who else does.
pub(super) struct Post {
    belfry: Belfry,
    presence: Presence,
    is_online: bool,
}

impl Post {
    pub(super) fn new(belfry: Belfry, lease: Duration) -> Self {
        Self { belfry, presence: Presence::new(lease), is_online: false }
    }

    /// Sees who came and who went.
    fn look(&mut self, turn: &mut Turn<'_>) -> rusqlite::Result<()> {
        let signs: Vec<Sign> = turn
            .on
            .prepare_cached("SELECT address, puppet, online, beat FROM nodes WHERE address != ?1")?
            .query_map([turn.me], |row| {
                Ok(Sign { address: row.get(0)?, puppet: row.get(1)?, online: row.get(2)?, beat: row.get(3)? })
            })?
            .collect::<Result<_, _>>()?;
        let verdicts = self.presence.look(&signs, Instant::now(), |node| self.belfry.is_there(node));
        for verdict in verdicts {
            match verdict {
                Verdict::Came(address) => {
                    let name = match store::name_of(turn.on, turn.me, address)? {
                        Some(name) => Some(name),
                        None => name_of_node(turn.on, address)?,
                    };
                    turn.tell(MeshEvent::Online { address, hops: Some(0), name });
                }
                Verdict::Went(address) => {
                    wait_again(turn, address)?;
                    turn.tell(MeshEvent::Offline { address });
                }
                Verdict::Lost { address, beat } => {
                    turn.on
                        .prepare_cached("UPDATE nodes SET online = 0 WHERE address = ?1 AND beat = ?2")?
                        .execute(params![address, beat])?;
                }
            }
        }
        Ok(())
    }
}

impl Rounds for Post {
    fn pace(&self) -> Duration {
        self.presence.pace()
    }

    fn round(&mut self, turn: &mut Turn<'_>, occasion: Occasion) -> rusqlite::Result<More> {
        if occasion.is_due || !self.is_online {
            turn.on
                .prepare_cached("UPDATE nodes SET online = 1, beat = beat + 1 WHERE address = ?1")?
                .execute([turn.me])?;
        }
        if !self.is_online {
            self.is_online = true;
            ring_all(turn)?;
        }
        if occasion.woken.presence || occasion.is_due {
            self.look(turn)?;
        }
        if occasion.woken.mail || occasion.is_due { receive(turn) } else { Ok(More::No) }
    }

    fn leave(&mut self, turn: &mut Turn<'_>) -> rusqlite::Result<()> {
        turn.on.prepare_cached("UPDATE nodes SET online = 0 WHERE address = ?1")?.execute([turn.me])?;
        ring_all(turn)
    }
}

/// Takes a message for delivery.
pub(super) fn send(
    turn: &mut Turn<'_>,
    message: Outgoing,
    bounds: &EmbeddedBounds,
) -> Result<Sent, Fault<MeshError>> {
    let refused = |why| Err(Fault::Refused(MeshError::Refused(why)));
    let to = message.destination;
    if to == turn.me {
        return refused(Refused::InvalidDestination);
    }
    if is_blocked(turn.on, turn.me, to)? {
        return refused(Refused::BlockedDestination);
    }
    let Some((is_puppet, is_online)) = find(turn.on, to)? else { return refused(Refused::NoPath) };
    if waiting(turn.on, to, bounds.waiting)? >= bounds.waiting {
        return refused(Refused::QueueFull);
    }
    let (message, number) = make(turn, turn.me, message)?;
    let hash = message.hash;
    turn.keep(&message, Place { waits: Waits::ForAnotherNode, number: Some(number) })?;
    add_news(turn.on, turn.me, &News::Sent(hash, message.state))?;
    if is_puppet {
        advance(turn.on, turn.me, hash, message.state, steps(message.state, DeliveryState::Delivered))?;
        keep_for_puppet(turn.on, to, &arrived(message.clone()), number, bounds)?;
    } else if is_online {
        advance(turn.on, turn.me, hash, message.state, &[DeliveryState::Sending])?;
        turn.ring(to, Ring::Mail);
    }
    Ok(Sent { hash, state: message.state })
}

/// Makes somebody send something to us.
pub(super) fn speak(
    turn: &mut Turn<'_>,
    name: &str,
    line: Line,
    bounds: &EmbeddedBounds,
) -> Result<Sent, Fault<SpeakError>> {
    if store::check_name(name).is_err() {
        let name = name.escape_debug().take(80).collect();
        return Err(Fault::Refused(SpeakError::Name { name }));
    }
    let from = puppet(turn, name)?;
    let outgoing = Outgoing {
        destination: turn.me,
        content: line.content,
        title: Some(line.title),
        method: None,
        reply_to: line.reply_to,
    };
    let (message, number) = make(turn, from, outgoing)?;
    let hash = message.hash;
    store::insert(turn.on, from, &message, Place { waits: Waits::ForAnotherNode, number: Some(number) })?;
    while receive(turn)? == More::Yes {}
    prune_puppet(turn.on, from, bounds)?;
    let state = store::state(turn.on, from, hash)?.unwrap_or(DeliveryState::Delivered);
    Ok(Sent { hash, state })
}

/// All nodes of the mesh.
pub(super) fn nodes(on: &Connection) -> rusqlite::Result<Vec<Node>> {
    let mut statement =
        on.prepare_cached("SELECT address, identity, name, puppet, online FROM nodes ORDER BY name")?;
    let rows = statement.query_map([], |row| {
        let standing = match (row.get(3)?, row.get(4)?) {
            (true, _) => Standing::Puppet,
            (false, true) => Standing::Online,
            (false, false) => Standing::Offline,
        };
        Ok(Node { address: row.get(0)?, identity: row.get(1)?, name: row.get(2)?, standing })
    })?;
    rows.collect()
}

/// Takes what waits for us. In one transaction it is in our list, is to be told to us, and its sender is to be told.
fn receive(turn: &mut Turn<'_>) -> rusqlite::Result<More> {
    let sql = format!(
        "SELECT {}, number, (SELECT puppet FROM nodes WHERE address = owner) FROM messages
         WHERE peer = ?1 AND waits = 1 ORDER BY id LIMIT ?2",
        store::COLUMNS
    );
    let found: Vec<(Message, Option<i64>, Option<bool>)> = turn
        .on
        .prepare_cached(&sql)?
        .query_map(params![turn.me, TAKE as i64], |row| Ok((store::read(row)?, row.get(15)?, row.get(16)?)))?
        .collect::<Result<_, _>>()?;
    let more = if found.len() == TAKE { More::Yes } else { More::No };
    for (message, number, is_puppet) in found {
        let (sender, hash, state) = (message.source, message.hash, message.state);
        let end = if is_blocked(turn.on, turn.me, sender)? {
            DeliveryState::Rejected
        } else {
            let place = Place { waits: Waits::No, number: number.map(i64::cast_unsigned) };
            if turn.keep(&arrived(message), place)? {
                add_news(turn.on, turn.me, &News::Received(hash))?;
            }
            DeliveryState::Delivered
        };
        if is_puppet == Some(true) {
            // Nobody listens to what a puppet is told.
            set(turn.on, sender, hash, end)?;
        } else {
            advance(turn.on, sender, hash, state, steps(state, end))?;
            turn.ring(sender, Ring::Mail);
        }
    }
    Ok(more)
}

/// A message to somebody who went before taking it waits as if it had never been on its way.
fn wait_again(turn: &mut Turn<'_>, peer: Address) -> rusqlite::Result<()> {
    let on_their_way: Vec<(MessageHash, DeliveryState)> = turn
        .on
        .prepare_cached(
            "SELECT hash, state FROM messages WHERE peer = ?1 AND waits = 1 AND owner = ?2 ORDER BY id",
        )?
        .query_map([peer, turn.me], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (hash, state) in on_their_way {
        if state != DeliveryState::Outbound {
            advance(turn.on, turn.me, hash, state, &[DeliveryState::Outbound])?;
        }
    }
    Ok(())
}

/// What is still to come until `end`.
fn steps(from: DeliveryState, end: DeliveryState) -> &'static [DeliveryState] {
    use DeliveryState::{
        Cancelled, Delivered, Failed, Generating, Outbound, Rejected, Sending, Sent, Unknown,
    };
    let all: &[DeliveryState] =
        if end == Rejected { &[Sending, Sent, Rejected] } else { &[Sending, Sent, Delivered] };
    match from {
        Generating | Outbound => all,
        Sending => &all[1..],
        Sent | Delivered | Rejected | Cancelled | Failed | Unknown => &all[2..],
    }
}

fn arrived(message: Message) -> Message {
    Message { direction: Direction::Incoming, state: DeliveryState::Delivered, ..message }
}

/// Gives a message its number, time and name.
fn make(turn: &Turn<'_>, source: Address, outgoing: Outgoing) -> rusqlite::Result<(Message, u64)> {
    let number: i64 = turn
        .on
        .prepare_cached("UPDATE nodes SET made = made + 1 WHERE address = ?1 RETURNING made")?
        .query_row([source], |row| row.get(0))?;
    let mut message = Message {
        hash: MessageHash([0; 32]),
        source,
        destination: outgoing.destination,
        direction: Direction::Outgoing,
        state: DeliveryState::Outbound,
        method: outgoing.method.unwrap_or(Method::Direct),
        title: outgoing.title.unwrap_or_default(),
        content: outgoing.content,
        lossy: false,
        attachments: Vec::new(),
        reply_to: outgoing.reply_to,
        timestamp_ms: turn.now_ms,
        rssi: None,
        snr: None,
        quality: None,
    };
    message.hash = hash(&message, number.cast_unsigned());
    Ok((message, number.cast_unsigned()))
}

/// SHA-256 over everything that was written, each part with its length before it, so that no two messages spell the same.
fn hash(message: &Message, number: u64) -> MessageHash {
    let mut digest = Sha256::new();
    let mut part = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    part(b"outrigger mesh message 1");
    part(&message.source.0);
    part(&message.destination.0);
    part(&number.to_be_bytes());
    part(&message.timestamp_ms.to_be_bytes());
    part(message.method.as_str().as_bytes());
    part(message.title.as_bytes());
    part(message.content.as_bytes());
    part(message.reply_to.as_ref().map_or(&[], |hash| hash.0.as_slice()));
    MessageHash(digest.finalize().into())
}

/// Whether a node is a puppet and whether it is online, if there is one.
fn find(on: &Connection, address: Address) -> rusqlite::Result<Option<(bool, bool)>> {
    on.prepare_cached("SELECT puppet, online FROM nodes WHERE address = ?1")?
        .query_row([address], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

fn name_of_node(on: &Connection, address: Address) -> rusqlite::Result<Option<String>> {
    on.prepare_cached("SELECT name FROM nodes WHERE address = ?1")?
        .query_row([address], |row| row.get(0))
        .optional()
}

/// How many messages wait for a node; no more than `at_most` are counted.
fn waiting(on: &Connection, address: Address, at_most: u64) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM messages WHERE peer = ?1 AND waits = 1 LIMIT ?2)";
    let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
    let count: i64 = on.prepare_cached(sql)?.query_row(params![address, at_most], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

fn ring_all(turn: &mut Turn<'_>) -> rusqlite::Result<()> {
    let others: Vec<Address> = turn
        .on
        .prepare_cached("SELECT address FROM nodes WHERE online = 1 AND puppet = 0 AND address != ?1")?
        .query_map([turn.me], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    others.into_iter().for_each(|node| turn.ring(node, Ring::Presence));
    Ok(())
}

/// The puppet of this name, made if there is none.
fn puppet(turn: &mut Turn<'_>, name: &str) -> Result<Address, Fault<SpeakError>> {
    let known: Option<(Address, bool)> = turn
        .on
        .prepare_cached("SELECT address, puppet FROM nodes WHERE name = ?1")?
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match known {
        Some((address, true)) => Ok(address),
        Some((_, false)) => Err(Fault::Refused(SpeakError::Real { name: name.to_owned() })),
        None => {
            let digest = Sha256::new().chain_update(b"outrigger mesh puppet\n").chain_update(name).finalize();
            let mut identity = [0; 16];
            identity.copy_from_slice(&digest[..16]);
            let identity = Address(identity);
            let address = store::address_of(identity);
            turn.on
                .prepare_cached(
                    "INSERT INTO nodes (address, identity, name, puppet, online, beat, made)
                     VALUES (?1, ?2, ?3, 1, 0, 0, 0)",
                )?
                .execute(params![address, identity, name])?;
            turn.tell(MeshEvent::Online { address, hops: Some(0), name: Some(name.to_owned()) });
            ring_all(turn)?;
            Ok(address)
        }
    }
}

fn keep_for_puppet(
    on: &Connection,
    puppet: Address,
    message: &Message,
    number: u64,
    bounds: &EmbeddedBounds,
) -> rusqlite::Result<()> {
    store::insert(on, puppet, message, Place { waits: Waits::No, number: Some(number) })?;
    prune_puppet(on, puppet, bounds)
}

fn prune_puppet(on: &Connection, puppet: Address, bounds: &EmbeddedBounds) -> rusqlite::Result<()> {
    let sql = "SELECT count(*) FROM messages WHERE owner = ?1";
    let count: i64 = on.prepare_cached(sql)?.query_row([puppet], |row| row.get(0))?;
    let excess = count.cast_unsigned().saturating_sub(bounds.messages);
    if excess > 0 {
        store::prune(on, puppet, excess)?;
    }
    Ok(())
}
