//! Turns: what belongs to one conversation is done one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedMutexGuard, mpsc};

use crate::runs::Control;

/// The turns of conversations, one at a time each: what an agent remembers belongs to one process.
#[derive(Debug, Default)]
pub(super) struct Turns {
    taken: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// What comes first: what is waited for, or somebody who does not want it any more.
#[derive(Debug)]
pub(super) enum First<T> {
    Come(T),
    Cancelled {
        why: String,
    },
    /// The daemon leaves.
    Leaving,
}

/// Waits for something, or until there is no more to wait for.
pub(super) async fn first_of<T>(
    awaited: impl Future<Output = T>,
    control: &mut mpsc::Receiver<Control>,
) -> First<T> {
    let mut awaited = std::pin::pin!(awaited);
    loop {
        tokio::select! {
            come = &mut awaited => return First::Come(come),
            command = control.recv() => match command {
                Some(Control::Cancel { why }) => return First::Cancelled { why },
                Some(Control::Drain) | None => return First::Leaving,
                // Nothing was asked yet, and nobody is there who could be told.
                Some(Control::Answered(_) | Control::Steer { .. }) => {}
            },
        }
    }
}

/// The turn of somebody in a conversation, until it is dropped.
#[derive(Debug)]
pub(super) struct TurnGuard {
    _guard: OwnedMutexGuard<()>,
}

impl Turns {
    /// Waits until nobody else is talking.
    pub(super) async fn take(&self, conversation: &str) -> TurnGuard {
        let turn = {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            // What nobody waits for or holds is only in the map.
            taken.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(taken.entry(conversation.to_owned()).or_default())
        };
        TurnGuard { _guard: turn.lock_owned().await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_conversation_has_one_turn_at_a_time_and_others_do_not_wait_for_it() {
        let turns = Arc::new(Turns::default());
        let first = turns.take("a").await;
        let _other = turns.take("b").await;
        let waiting = Arc::clone(&turns);
        let mut second = tokio::spawn(async move { waiting.take("a").await });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        drop((&mut second).await.unwrap());
        drop(turns.take("c").await);
        assert!(turns.taken.lock().unwrap().len() <= 2);
    }

    #[tokio::test]
    async fn whoever_waits_can_be_told_not_to() {
        let turns = Turns::default();
        let _first = turns.take("a").await;
        let (say, mut control) = mpsc::channel(4);
        say.send(Control::Steer { text: "on".to_owned() }).await.unwrap();
        say.send(Control::Cancel { why: "enough".to_owned() }).await.unwrap();
        let first = first_of(turns.take("a"), &mut control).await;
        assert!(matches!(first, First::Cancelled { why } if why == "enough"));
        say.send(Control::Drain).await.unwrap();
        assert!(matches!(first_of(turns.take("a"), &mut control).await, First::Leaving));
        assert!(matches!(first_of(turns.take("b"), &mut control).await, First::Come(_)));
    }
}
