//! The children that scripts run in: a few of this very program, kept warm.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use outrigger_mustard::host::{Host, HostKey, Pool, PoolRules, ProgramSource, Source, Terms};
use outrigger_supervise::driver::Supervisor;

/// What a daemon spends on scripts: at most four children, one of them ready before it is needed. A script that waits for a call has
/// none, so that four are enough for thousands.
pub(crate) const POOL: PoolRules = PoolRules {
    size: NonZeroUsize::new(4).unwrap(),
    warm: 1,
    runs_per_child: NonZeroU32::new(10_000).unwrap(),
    rss_bytes: Some(256 << 20),
};

/// The largest snapshot, on the way to a child and back.
const LARGEST: u64 = 256 << 20;

/// A host whose children are this very program. The key is in `key_file`, and is made if it is not there: whoever has it can go on with
/// what is stored. Must be called inside a runtime, because the first child is started at once.
pub(crate) fn host(supervisor: &Supervisor, key_file: &Path) -> anyhow::Result<Host> {
    let key = crate::js::keep::key(key_file)?;
    with(Arc::new(ProgramSource::this_program(supervisor.clone())), key)
}

/// A host whose children come from elsewhere.
pub(super) fn with(source: Arc<dyn Source>, key: HostKey) -> anyhow::Result<Host> {
    let terms = Terms { request_bytes: LARGEST, response_bytes: LARGEST, ..Terms::usual() };
    Host::new(Pool::new(source, terms, POOL), key).context("the system has no randomness to give")
}
