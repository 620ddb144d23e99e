//! Passes on what people want of an attempt under way: answers, words for the agent, its end.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_abp::conduct::Job;
use outrigger_abp::govern::{self, AnswerError, Ledger};
use outrigger_abp::host::{Over, Remote};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::onlooker::{ASKED, News, answered, reply};
use crate::runs::backend::COMMANDS;
use crate::runs::{Answer, Approval, Choice, Control, Teller};

/// What a child is told when the daemon leaves; it is in the receipt of the attempt, by which the next daemon knows it.
pub(in crate::backends) const GOING_DOWN: &str = "the daemon is going down";

/// Whether the daemon leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backends) enum Leaving {
    No,
    Yes,
}

/// Listens to whoever may want something of one attempt.
pub(super) struct Attendant {
    number: u32,
    run: String,
    remote: Remote,
    control: mpsc::Receiver<Control>,
    news: mpsc::Receiver<News>,
    deaf: Arc<Notify>,
    ledger: PathBuf,
    teller: Teller,
    /// What was said to an agent that was not there yet. A command would end a run that has no child, whatever it is.
    early: Early,
    /// What was asked and is not yet written down.
    asking: JoinSet<(String, Written)>,
    leaving: Leaving,
}

enum Early {
    Waiting(VecDeque<String>),
    Over,
}

/// Whether something for a person was written down.
enum Written {
    Yes,
    No,
}

impl Attendant {
    pub(super) fn new(
        number: u32,
        job: &Job,
        remote: Remote,
        control: mpsc::Receiver<Control>,
        news: mpsc::Receiver<News>,
        deaf: Arc<Notify>,
        teller: Teller,
    ) -> Self {
        Self {
            number,
            run: job.run.as_str().to_owned(),
            remote,
            control,
            news,
            deaf,
            ledger: job.ledger(),
            teller,
            early: Early::Waiting(VecDeque::new()),
            asking: JoinSet::new(),
            leaving: Leaving::No,
        }
    }

    pub(super) fn leaving(&self) -> Leaving {
        self.leaving
    }

    /// Attends until the run is over and this is dropped.
    pub(super) async fn attend(&mut self) -> Infallible {
        let mut open = true;
        loop {
            // A run that is over hears nothing any more, which is fine with everybody here.
            let _: Result<(), Over> = tokio::select! {
                command = self.control.recv(), if open => match command {
                    Some(command) => self.command(command).await,
                    // Nobody could ever answer it or end it.
                    None => {
                        open = false;
                        self.drain().await
                    }
                },
                Some(news) = self.news.recv() => self.hear(news).await,
                Some(Ok((key, written))) = self.asking.join_next() => match written {
                    Written::Yes => Ok(()),
                    Written::No => self.nobody(&key).await,
                },
                () = self.deaf.notified() => self.remote.kill("the run cannot be written down any more").await,
            };
        }
    }

    async fn command(&mut self, command: Control) -> Result<(), Over> {
        match command {
            Control::Cancel { why } => self.remote.cancel(why).await,
            Control::Steer { text } => match &mut self.early {
                Early::Over => self.remote.steer(text).await,
                Early::Waiting(texts) if texts.len() < COMMANDS => {
                    texts.push_back(text);
                    Ok(())
                }
                Early::Waiting(_) => {
                    self.note("too much was said before the agent was there; the last of it is lost").await
                }
            },
            Control::Answered(approval) => self.answered(&approval).await,
            Control::Drain => self.drain().await,
        }
    }

    async fn drain(&mut self) -> Result<(), Over> {
        self.leaving = Leaving::Yes;
        self.remote.cancel(GOING_DOWN).await
    }

    async fn hear(&mut self, news: News) -> Result<(), Over> {
        match news {
            News::Ready => {
                if let Early::Waiting(texts) = std::mem::replace(&mut self.early, Early::Over) {
                    for text in texts {
                        self.remote.steer(text).await?;
                    }
                }
                Ok(())
            }
            News::Asked { key, written } => {
                self.asking.spawn(async move {
                    match written.await {
                        Ok(_) => (key, Written::Yes),
                        Err(_) => (key, Written::No),
                    }
                });
                Ok(())
            }
            News::Answer(answer) => self.remote.answer(*answer).await,
        }
    }

    /// What was said to this attempt. What an earlier one asked has no meaning here.
    async fn answered(&mut self, approval: &Approval) -> Result<(), Over> {
        match &approval.given {
            Some(given) if approval.attempt == self.number => {
                self.settle(&approval.key, &given.answer, &given.by.0).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The run has asked people too much already.
    async fn nobody(&mut self, key: &str) -> Result<(), Over> {
        let answer = Answer {
            reason: Some("this run has asked too much already".to_owned()),
            ..Answer::plain(Choice::Deny)
        };
        self.settle(key, &answer, "daemon").await
    }

    async fn settle(&mut self, key: &str, answer: &Answer, by: &str) -> Result<(), Over> {
        if let Some(id) = key.strip_prefix(ASKED) {
            return self.remote.answer(reply(&self.run, id, answer, by)).await;
        }
        let answered = answered(&govern::ApprovalId::new(key), answer, by);
        let written = Ledger::open_existing(&self.ledger)
            .map_err(AnswerError::from)
            .and_then(|mut ledger| ledger.answer(&answered));
        match written {
            // The control plane's own deadline, or another process with the ledger, was first.
            Ok(()) | Err(AnswerError::Already(_)) => Ok(()),
            Err(error) => self.note(format!("the answer was not taken: {error}")).await,
        }
    }

    async fn note(&self, text: impl Into<String>) -> Result<(), Over> {
        self.say(text).await;
        Ok(())
    }

    /// Something that somebody should know.
    pub(super) async fn say(&self, text: impl Into<String>) {
        // A log that cannot be written rings its own bell.
        let _ = self.teller.note(text).await;
    }
}
