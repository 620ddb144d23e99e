//! The desk of one session: takes requests in the frozen order, and answers each exactly once.

use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::peer::{Answer, BoxFuture, Call, Complaint, Handler, Note, Reaction};
use outrigger_wire::rpc::{ErrorObject, Id};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::owner::Gate;
use super::serve::{Asked, Held, Served, Shared};
use super::session::{Phase, Standing};
use crate::protocol::{ExtensionMethod, Fault, HostMethod, SessionId, Version};

/// The desk of one session: the handler of its channel.
#[derive(Debug)]
pub struct Desk {
    pub(super) shared: Arc<Shared>,
}

impl Desk {
    pub(super) fn new(gate: Arc<Gate>, session: SessionId) -> Self {
        Self { shared: Arc::new(Shared::new(gate, session)) }
    }

    /// The session speaks this version from now on, and its requests are served.
    pub fn opened(&self, version: Version) {
        let shared = &self.shared;
        // Under the lock, so that no request can slip in between those that wait and those that do not.
        let mut books = shared.books();
        shared.state.go(|standing| match standing.phase {
            Phase::Attached | Phase::Opening => Some(Standing { phase: Phase::Open, version }),
            Phase::Open | Phase::Suspended(_) | Phase::Leaving => None,
        });
        let held = std::mem::take(&mut books.held);
        drop(books);
        shared.release(held);
    }

    /// The platform does not want the extension to do anything: requests are refused, those that were begun have two more
    /// seconds.
    pub fn suspend(&self) {
        self.shared.state.go(|standing| match standing.phase {
            Phase::Open => Some(Standing { phase: Phase::Suspended(Instant::now()), ..standing }),
            Phase::Attached | Phase::Opening | Phase::Suspended(_) | Phase::Leaving => None,
        });
    }

    /// The extension may go on.
    pub fn resume(&self) {
        self.shared.state.go(|standing| match standing.phase {
            Phase::Suspended(_) => Some(Standing { phase: Phase::Open, ..standing }),
            Phase::Attached | Phase::Opening | Phase::Open | Phase::Leaving => None,
        });
    }

    /// The extension was asked to leave: nothing new is begun, what was begun is finished.
    pub fn leaving(&self) {
        let mut books = self.shared.books();
        self.shared.state.go(|standing| Some(Standing { phase: Phase::Leaving, ..standing }));
        let held = std::mem::take(&mut books.held);
        drop(books);
        self.shared.release(held);
    }

    /// Which session this is.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.shared.session
    }
}

impl Handler for Desk {
    fn admit(&self, method: &str, id: &Id) -> Result<(), ErrorObject> {
        let shared = &self.shared;
        let known = HostMethod::find(method);
        let admitted = shared.state.admits(known).inspect_err(|_| shared.record_state(known, id));
        admitted.and_then(|()| shared.take_token()).map_err(|fault| {
            shared.count(known, Duration::ZERO, Some(&fault));
            fault.to_error()
        })
    }

    fn request(&self, call: Call) -> Answer {
        let Call { id, method, params, peer: _ } = call;
        let asked = Asked { id, method, params };
        let shared = &self.shared;
        let mut books = shared.books();
        if shared.state.standing().phase == Phase::Opening {
            let (answer, served) = oneshot::channel();
            books.held.push_back(Held { asked, answer });
            drop(books);
            let shared = Arc::clone(shared);
            return Answer::Later(Box::pin(async move {
                match served.await {
                    Ok(served) => shared.finish(served).await,
                    // The desk is gone before the session was open.
                    Err(_) => Err(Fault::NotInitialized.to_error()),
                }
            }));
        }
        drop(books);
        match shared.serve(&asked) {
            Served::Now(outcome) => Answer::Now(outcome.map_err(ErrorObject::from)),
            later @ Served::Later(..) => Answer::Later(Box::pin(Arc::clone(shared).finish(later))),
        }
    }

    fn notification(&self, note: Note) -> Option<BoxFuture<()>> {
        let shared = Arc::clone(&self.shared);
        let Note { method, params, peer: _ } = note;
        match shared.state.standing().phase {
            Phase::Opening => {
                let decided = shared.state.decided();
                Some(Box::pin(async move {
                    decided.await;
                    shared.hear(&method, params.as_deref());
                }))
            }
            Phase::Attached | Phase::Open | Phase::Suspended(_) | Phase::Leaving => {
                shared.hear(&method, params.as_deref());
                None
            }
        }
    }

    fn answered(&self, method: &str) {
        if method == ExtensionMethod::Initialize.as_str() {
            self.shared.state.go(|standing| match standing.phase {
                Phase::Attached => Some(Standing { phase: Phase::Opening, ..standing }),
                Phase::Opening | Phase::Open | Phase::Suspended(_) | Phase::Leaving => None,
            });
        }
    }

    fn complain(&self, complaint: &Complaint<'_>) -> Reaction {
        self.shared.complain(complaint)
    }
}
