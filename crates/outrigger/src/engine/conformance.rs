//! What every engine must do, written against the trait alone: one function a promise, and [`promises`] makes a test of each.

pub(crate) mod logs;
pub(crate) mod work;

use std::sync::Arc;

use super::{Append, Engine, LogId, Millis, NewHead, QueueName, Seq, Work};

/// Makes a test of every promise. The argument makes an engine with nothing in it, and something that must live as long.
macro_rules! promises {
    ($fresh:expr) => {
        crate::engine::conformance::each!($fresh, logs:
            an_append_needs_to_know_how_long_the_log_is,
            records_are_read_in_order_from_any_place,
            of_many_who_append_at_once_exactly_one_wins,
            a_read_takes_as_much_as_fits_and_at_least_one,
            an_append_without_records_changes_the_head_under_the_same_condition,
            heads_come_newest_first_page_by_page,
            heads_can_be_narrowed_to_labels_and_are_counted,
            a_record_at_the_limit_is_kept_and_one_past_it_is_refused,
            blobs_are_named_by_their_hash_and_belong_to_their_log,
            a_forgotten_log_leaves_nothing_and_can_be_begun_again,
            watchers_hear_what_was_appended_and_forgotten,
            a_slow_watcher_is_told_that_it_missed_something,
        );
        crate::engine::conformance::each!($fresh, work:
            work_is_queued_with_the_append_or_not_at_all,
            what_has_been_due_for_longest_is_claimed_first,
            what_is_not_due_yet_is_announced,
            of_many_who_claim_at_once_each_gets_something_else,
            a_key_that_is_queued_already_is_due_at_the_earlier_moment,
            a_lease_that_ran_out_makes_the_work_claimable_again,
            an_extended_lease_holds_for_longer,
            a_lost_claim_can_neither_be_extended_nor_acknowledged,
            acknowledged_work_is_gone,
            work_queued_during_a_claim_stays_for_the_next,
            queues_do_not_see_each_other,
            the_work_of_a_forgotten_log_is_forgotten,
        );
    };
}

macro_rules! each {
    ($fresh:expr, $topic:ident: $($promise:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let (engine, _kept) = $fresh;
                crate::engine::conformance::$topic::$promise(engine).await;
            }
        )*
    };
}

pub(crate) use each;
pub(crate) use promises;

/// The log of this name.
fn log(name: &str) -> LogId {
    LogId(name.to_owned())
}

fn queue(name: &str) -> QueueName {
    QueueName(name.to_owned())
}

/// An append of these records and nothing else.
fn records(name: &str, expected: u64, records: &[&str]) -> Append {
    Append {
        log: log(name),
        expected: Seq(expected),
        records: records.iter().map(|&record| record.to_owned()).collect(),
        head: None,
        work: Vec::new(),
    }
}

/// An append of a head and nothing else.
fn headed(name: &str, expected: u64, label: &str, body: &str) -> Append {
    let head = NewHead { label: label.to_owned(), body: body.to_owned() };
    Append { head: Some(head), ..records(name, expected, &[]) }
}

/// An append of work and nothing else.
fn queued(name: &str, expected: u64, in_queue: &str, key: &str, due: Millis) -> Append {
    let work = vec![Work { queue: queue(in_queue), key: key.to_owned(), due }];
    Append { work, ..records(name, expected, &[]) }
}

/// Queues something that is due since `ago` milliseconds.
async fn put(engine: &Arc<dyn Engine>, in_queue: &str, key: &str, ago: u64) {
    let due = Millis(Millis::now().0 - ago);
    engine.append_if(queued(&format!("log of {key}"), 0, in_queue, key, due)).await.unwrap();
}
