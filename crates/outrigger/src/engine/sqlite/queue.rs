//! Work in a table: queued, claimed, kept, done.
//!
//! A row is the work of one key. While it is claimed (`lease_until` is to come), what is queued under the same key goes into
//! `again`, and becomes the row when the claim is acknowledged: so a claim takes away no more than what it claimed.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::schema::{signed, unsigned};
use super::writer::Batch;
use crate::engine::{Claim, Claimed, LogId, Millis, QueueName, Work};

/// Somebody else has it, or nobody.
pub(super) struct NotHeld;

/// Queues work that belongs to a log. What is queued already stays where it is, and is due at the earlier of both moments.
pub(super) fn put(connection: &Connection, log: &LogId, work: &Work, now: Millis) -> Result<(), Fault> {
    // Without a lease the comparison is NULL, which is not true.
    let sql = "INSERT INTO work (queue, key, log, due) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (queue, key) DO UPDATE SET
                   log = excluded.log,
                   again = CASE WHEN lease_until > ?5
                       THEN min(ifnull(again, excluded.due), excluded.due) ELSE again END,
                   due = CASE WHEN lease_until > ?5 THEN due ELSE min(due, excluded.due) END";
    let values = params![work.queue.0, work.key, log.0, signed(work.due.0), signed(now.0)];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Takes the work that has been due for longest, with everything under its key that is due.
pub(super) fn claim(batch: &mut Batch<'_>, queue: &QueueName, lease: Duration) -> Result<Claimed, Fault> {
    let connection = batch.connection;
    let now = Millis::now();
    let moment = signed(now.0);
    // Those that are claimed are passed over: there are never more of them than those who work.
    let sql = "SELECT work, key FROM work WHERE queue = ?1 AND due <= ?2
               AND (lease_until IS NULL OR lease_until <= ?2) ORDER BY due, work LIMIT 1";
    let found = connection
        .prepare_cached(sql)?
        .query_row(params![queue.0, moment], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let Some((work, key)) = found else { return next(connection, queue, moment) };
    let token = batch.tokens.next();
    let sql = "UPDATE work SET token = ?2, lease_until = ?3,
               again = CASE WHEN again <= ?4 THEN NULL ELSE again END WHERE work = ?1";
    connection.prepare_cached(sql)?.execute([work, token, signed(now.after(lease).0), moment])?;
    Ok(Claimed::Work(Claim { queue: queue.clone(), key, token: unsigned(token) }))
}

/// When there will be something to claim, if nothing is now.
fn next(connection: &Connection, queue: &QueueName, now: i64) -> Result<Claimed, Fault> {
    let sql = "SELECT min(moment) FROM (
                   SELECT min(due) AS moment FROM work WHERE queue = ?1 AND due > ?2
                   UNION ALL
                   SELECT min(lease_until) FROM work WHERE queue = ?1 AND due <= ?2)";
    let moment: Option<i64> =
        connection.prepare_cached(sql)?.query_row(params![queue.0, now], |row| row.get(0))?;
    Ok(moment.map_or(Claimed::Nothing, |moment| Claimed::NotBefore(Millis(unsigned(moment)))))
}

/// Keeps a claim for longer.
pub(super) fn extend(
    batch: &mut Batch<'_>,
    claim: &Claim,
    lease: Duration,
) -> Result<Result<(), NotHeld>, Fault> {
    let now = Millis::now();
    let sql = "UPDATE work SET lease_until = ?5
               WHERE queue = ?1 AND key = ?2 AND token = ?3 AND lease_until > ?4";
    let token = signed(claim.token);
    let values = params![claim.queue.0, claim.key, token, signed(now.0), signed(now.after(lease).0)];
    match batch.connection.prepare_cached(sql)?.execute(values)? {
        0 => Ok(Err(NotHeld)),
        _ => Ok(Ok(())),
    }
}

/// Takes what was claimed away; what was queued since becomes the work of the key.
pub(super) fn ack(batch: &mut Batch<'_>, claim: &Claim) -> Result<Result<(), NotHeld>, Fault> {
    let connection = batch.connection;
    let sql = "SELECT work, again FROM work
               WHERE queue = ?1 AND key = ?2 AND token = ?3 AND lease_until > ?4";
    let values = params![claim.queue.0, claim.key, signed(claim.token), signed(Millis::now().0)];
    let held = connection
        .prepare_cached(sql)?
        .query_row(values, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))
        .optional()?;
    let sql = match held {
        None => return Ok(Err(NotHeld)),
        Some((_, None)) => "DELETE FROM work WHERE work = ?1",
        Some((_, Some(_))) => {
            "UPDATE work SET due = again, again = NULL, token = 0, lease_until = NULL WHERE work = ?1"
        }
    };
    connection.prepare_cached(sql)?.execute([held.map(|(work, _)| work)])?;
    Ok(Ok(()))
}

/// Ends all leases. Only right for someone who knows that nobody has one.
pub(super) fn end_leases(connection: &Connection) -> Result<(), Fault> {
    connection.execute("UPDATE work SET lease_until = NULL, token = 0 WHERE lease_until IS NOT NULL", [])?;
    Ok(())
}
