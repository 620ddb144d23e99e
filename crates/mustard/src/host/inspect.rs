//! Looks into a record: what it waits for and what it holds, as a sidecar that checked the whole snapshot says.

use std::time::Duration;

use super::Host;
use super::outcome::ScriptError;
use super::pool::LendError;
use super::sidecar::SidecarError;
use super::store::Record;
use crate::protocol::ids::SnapshotId;
use crate::protocol::request::{Claim, Method, Policy};
use crate::protocol::response::{Inspection, Reply};

/// How long a child may take to check a snapshot.
const WITHIN: Duration = Duration::from_secs(60);

/// Why a record cannot be looked into.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The sidecar refuses the snapshot.
    #[error("{0}")]
    Refused(Box<ScriptError>),
    /// There is no child.
    #[error(transparent)]
    NoChild(#[from] LendError),
    /// The child failed, or cannot do it.
    #[error(transparent)]
    Sidecar(SidecarError),
}

impl Host {
    /// What a record waits for and holds. Nothing is run, and nothing is used up. Children of version 2 cannot.
    ///
    /// # Errors
    ///
    /// When its snapshot is not good, or there is no child that can look into it.
    pub async fn inspect(&self, record: &Record) -> Result<Inspection, InspectError> {
        let mut sidecar = self.pool().lend().await?;
        let id = SnapshotId::of(&record.snapshot).hex();
        let policy = Policy {
            capabilities: record.capabilities.clone(),
            limits: Some(record.limits),
            snapshot_id: Some(id.as_str().into()),
            snapshot_key_base64: Some(self.key().base64().into()),
            snapshot_key_digest: Some(self.key().digest().into()),
            snapshot_token: Some(self.key().token(id.as_str()).into()),
        };
        let claim = Claim {
            snapshot_id: Some(id.as_str().into()),
            policy: Some(policy),
            policy_id: None,
            auth: None,
        };
        let answered = sidecar.ask(Method::Inspect(claim), &record.snapshot, WITHIN).await;
        match answered.map_err(InspectError::Sidecar)?.outcome {
            Ok(Reply::Inspection(inspection)) => Ok(inspection),
            Ok(other) => Err(InspectError::Sidecar(sidecar.nonsense(&other).await)),
            Err(failure) => Err(InspectError::Refused(Box::new(failure.into()))),
        }
    }
}
