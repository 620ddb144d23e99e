//! Asking a host: the one that is up, through its socket; or, for what needs no process, one made for the question.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use outrigger_sep::host::control::{self, AddressBook, SOCKET};
use outrigger_sep::host::{Begin, Fleet, FleetOptions};
use outrigger_sep::mesh::{Address, Nowhere};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_wire::peer::{BoxFuture, CallError, Deadline, Handler, NoMethods, Peer, Wiring};
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::net::UnixStream;

use super::place::{Site, facts};

/// How long a host may take to answer; an action of a panel has 30 seconds of its own.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// A host that can be asked.
pub(crate) enum Host {
    /// One that is up.
    Up(Peer),
    /// One that only looks and decides.
    Here(Fleet),
}

/// Whether a question can be answered without a host that is up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Up,
    Any,
}

impl Host {
    pub(crate) async fn find(site: &Site, needs: Needs) -> anyhow::Result<Self> {
        match Self::up(site, Arc::new(NoMethods)).await? {
            Some(peer) => Ok(Self::Up(peer)),
            None if needs == Needs::Up => {
                bail!("no host is up in {}; `outrigger ext up` is one", site.home.display())
            }
            None => {
                let settings =
                    Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN };
                let options = FleetOptions {
                    policy: site.policy.clone(),
                    facts: facts(),
                    supervisor: Supervisor::new(settings),
                    messaging: Arc::new(Nowhere),
                    auto_level: "auto",
                    seed: 0,
                    begin: Begin::OnlyLooking,
                };
                let fleet = Fleet::start(options).await?;
                fleet.rescan().await;
                Ok(Self::Here(fleet))
            }
        }
    }

    /// The host that is up, if there is one; `ear` hears what it tells.
    pub(crate) async fn up(site: &Site, ear: Arc<dyn Handler>) -> anyhow::Result<Option<Peer>> {
        let path = site.policy.state_dir.join(SOCKET);
        match UnixStream::connect(&path).await {
            Ok(stream) => {
                let (input, output) = stream.into_split();
                Ok(Some(Peer::start(Wiring::new(input, output), ear, control::CONFIG)))
            }
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error).with_context(|| format!("the host at {} cannot be reached", path.display())),
            },
        }
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> anyhow::Result<Value> {
        let params = to_raw_value(&params)?;
        let answer = match self {
            Self::Up(peer) => match peer.call(method, Some(&params), Deadline::After(ANSWER_WITHIN)).await {
                Ok(answer) => answer,
                Err(CallError::Remote { error, .. }) => bail!("{}", error.message),
                Err(error) => bail!("the host did not answer: {error}"),
            },
            Self::Here(fleet) => {
                let served = control::serve(fleet, &NoBook, method, Some(&params)).await;
                served.map_err(|error| anyhow!("{}", error.message))?
            }
        };
        Ok(serde_json::from_str(answer.get())?)
    }

    /// Ends the question.
    pub(crate) async fn done(self) {
        match self {
            Self::Up(peer) => drop(peer.close().await),
            Self::Here(fleet) => fleet.shutdown().await,
        }
    }
}

/// The people that nobody knows.
struct NoBook;

impl AddressBook for NoBook {
    fn add(&self, _: String, _: Address) -> BoxFuture<Result<u64, String>> {
        Box::pin(async { Err("no host is up".to_owned()) })
    }

    fn remove(&self, _: u64) -> BoxFuture<Result<(), String>> {
        Box::pin(async { Err("no host is up".to_owned()) })
    }
}
