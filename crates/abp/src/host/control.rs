//! The hand of whoever started a run on that run, from any task: cancel it, kill it, answer what it asked.

use tokio::sync::mpsc;

use crate::protocol::Answer;

/// How many commands may wait. The run takes them between two reads, so that a few are plenty.
const COMMANDS: usize = 16;

/// What can be wanted of a run under way.
#[derive(Clone, Debug)]
pub enum Command {
    /// End soon, with a receipt if possible.
    Cancel {
        /// Said to the child and in the failure.
        why: String,
    },
    /// End now.
    Kill {
        /// Said in the failure.
        why: String,
    },
    /// Tell the child what the user says, if it takes that.
    Steer {
        /// What.
        text: String,
    },
    /// Send this answer to something that the child asked.
    Answer(Answer),
}

/// The end of the channel that a run listens to.
#[derive(Debug)]
pub struct RunControl {
    commands: mpsc::Receiver<Command>,
}

/// The end that speaks. Clones speak to the same run.
#[derive(Clone, Debug)]
pub struct Remote {
    commands: mpsc::Sender<Command>,
}

/// The run is over, so there is nothing left to be wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is over")]
pub struct Over;

impl RunControl {
    /// A pair: the remote for whoever may interfere, the control for the run.
    pub fn pair() -> (Remote, Self) {
        let (sender, commands) = mpsc::channel(COMMANDS);
        (Remote { commands: sender }, Self { commands })
    }

    /// Nobody interferes.
    pub fn none() -> Self {
        Self::pair().1
    }

    /// The next command, for who has no run yet; never comes when nobody is left to give one.
    pub async fn next(&mut self) -> Command {
        match self.commands.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }
}

impl Remote {
    /// Cancels the run.
    ///
    /// # Errors
    ///
    /// When it is over.
    pub async fn cancel(&self, why: impl Into<String>) -> Result<(), Over> {
        self.send(Command::Cancel { why: why.into() }).await
    }

    /// Kills the child of the run.
    ///
    /// # Errors
    ///
    /// When it is over.
    pub async fn kill(&self, why: impl Into<String>) -> Result<(), Over> {
        self.send(Command::Kill { why: why.into() }).await
    }

    /// Tells the child what the user says while it works. One that does not take that, or cannot be told, is a
    /// [`Warning::NotSteered`](super::Warning::NotSteered).
    ///
    /// # Errors
    ///
    /// When the run is over.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), Over> {
        self.send(Command::Steer { text: text.into() }).await
    }

    /// Answers what the child asked.
    ///
    /// # Errors
    ///
    /// When the run is over.
    pub async fn answer(&self, answer: Answer) -> Result<(), Over> {
        self.send(Command::Answer(answer)).await
    }

    async fn send(&self, command: Command) -> Result<(), Over> {
        self.commands.send(command).await.map_err(|_| Over)
    }
}
