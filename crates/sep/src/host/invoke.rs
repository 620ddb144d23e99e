//! An action of a panel, from the click to what the panel shows afterwards.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::channel::CallFailure;
use super::fleet::Fleet;
use super::ui::{BadPanelKey, InvokeError, PanelKey, ToastDraft, Waking};
use crate::protocol::{ActionCall, ActionOutcome, ActionResult, ExtensionId, State};

/// How long a lazy extension may take to be there and to have registered its panel.
const AWAKE_WITHIN: Duration = Duration::from_secs(30);

/// What came of an action.
#[derive(Clone, Debug, Serialize)]
pub struct Invoked {
    /// Whether it worked.
    pub outcome: ActionOutcome,
    /// What the extension wants the person to read.
    pub message: Option<String>,
}

/// Why an action has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// It is not the name of a panel.
    #[error(transparent)]
    Key(#[from] BadPanelKey),
    /// It was not begun.
    #[error(transparent)]
    Refused(#[from] InvokeError),
    /// The extension could not be woken for it.
    #[error("{id} is {state} and could not be woken")]
    Asleep {
        /// Which.
        id: ExtensionId,
        /// Where it is in its life.
        state: State,
    },
    /// The extension was there and is not any more.
    #[error("{id} is not running")]
    Gone {
        /// Which.
        id: ExtensionId,
    },
    /// The extension did not do it.
    #[error(transparent)]
    Failed(#[from] CallFailure),
    /// What it answered cannot be shown.
    #[error("the answer of the extension cannot be shown: {why}")]
    Unfit {
        /// Why.
        why: String,
    },
}

impl Fleet {
    /// Invokes an action of a panel, as a click would. An extension that sleeps is woken for it.
    pub async fn call(&self, key: &str, action: &str, input: Option<&str>) -> Result<Invoked, CallError> {
        let key = PanelKey::parse(key)?;
        let busy = self.begin(&key, action, input).await?;
        let id = key.extension();
        let conversation = self.conversation(id).await.ok_or_else(|| CallError::Gone { id: id.clone() })?;
        let call = ActionCall {
            panel_id: key.panel().to_owned(),
            action_id: action.to_owned(),
            input: input.map(str::to_owned),
            invocation: busy.invocation().to_string(),
        };
        let result = conversation.action(&call).await?;
        drop(busy);
        self.show_result(&key, result)
    }

    async fn begin(
        &self,
        key: &PanelKey,
        action: &str,
        input: Option<&str>,
    ) -> Result<super::ui::Busy, CallError> {
        let deadline = Instant::now() + AWAKE_WITHIN;
        let mut changes = self.panels().watch();
        let mut woken = false;
        loop {
            changes.borrow_and_update();
            let refused = match self.panels().begin(key, action, input) {
                Ok(busy) => return Ok(busy),
                Err(refused) => refused,
            };
            match &refused {
                InvokeError::Dormant { waking: Waking::OnAction } if !woken => {
                    woken = true;
                    let view = self.wake(key.extension()).await;
                    match view.map(|view| view.state) {
                        Some(State::Starting | State::Ready | State::Unresponsive) => {}
                        Some(state) => return Err(CallError::Asleep { id: key.extension().clone(), state }),
                        None => return Err(CallError::Gone { id: key.extension().clone() }),
                    }
                }
                // It is on its way: first it becomes ready, then it registers what its panel can do.
                InvokeError::Dormant { .. } | InvokeError::NoAction { .. } if woken => {}
                _ => return Err(refused.into()),
            }
            if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return Err(refused.into());
            }
        }
    }

    fn show_result(&self, key: &PanelKey, result: ActionResult) -> Result<Invoked, CallError> {
        let ActionResult { outcome, toast, panel } = result;
        let unfit = |why: &dyn std::fmt::Display| CallError::Unfit { why: why.to_string() };
        if let Some(patch) = panel {
            self.panels().update(key.extension(), key.panel(), patch).map_err(|error| unfit(&error))?;
        }
        let message = toast.as_ref().map(|toast| toast.message.clone());
        if let Some(toast) = toast {
            self.show_notice(key.extension(), ToastDraft::new(toast.message, toast.level));
        }
        Ok(Invoked { outcome, message })
    }
}
