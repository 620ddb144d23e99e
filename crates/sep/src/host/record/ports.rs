//! The records as the gate knows them: it decides, and says so here first.

use std::time::Duration;

use super::{Audit, AuditKind, Entry, ExtensionLog, Incident, Level, Metrics, Ruling, Stream};
use crate::host::gate::{Log, Meter, NotRecorded, Offence, Reason, Recorded, Recorder};
use crate::protocol::{LogLevel, Permission};

impl Recorder for Audit {
    fn record(&self, decision: &Recorded<'_>) -> Result<(), NotRecorded> {
        let decided = if decision.reason == Reason::Granted { Ruling::Allow } else { Ruling::Deny };
        let (kind, method) = match (decision.method, decided) {
            (Some(method), _) => (AuditKind::Rpc, method.as_str()),
            (None, Ruling::Allow) => (AuditKind::Grant, "grant"),
            (None, Ruling::Deny) => (AuditKind::Grant, "revoke"),
        };
        let entry = Entry {
            extension: Some(decision.extension),
            session: decision.session,
            kind,
            method,
            permission: decision.permission,
            decision: decided,
            reason: decision.reason.as_str(),
            request: decision.request,
            params: decision.params,
        };
        self.write(&entry).map_err(|_| NotRecorded)
    }
}

impl Meter for Metrics {
    fn rpc(&self, method: &str, took: Duration, code: Option<i64>) {
        self.rpc(method, took, code);
    }

    fn denied(&self, method: &str, permission: Permission) {
        self.denied(method, permission);
    }

    fn offence(&self, offence: Offence) {
        self.incident(match offence {
            Offence::RateLimited => Incident::RateLimited,
            Offence::FrameOversize => Incident::FrameOversize,
            Offence::ProtocolViolation => Incident::ProtocolViolation,
        });
    }

    fn entered(&self) {
        self.entered();
    }

    fn left(&self) {
        self.left();
    }
}

impl Log for ExtensionLog {
    fn extension_says(&self, level: LogLevel, line: &str) {
        self.line(Stream::Ext, level.into(), line);
    }

    fn host_says(&self, level: LogLevel, line: &str) {
        self.line(Stream::Host, level.into(), line);
    }
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warn => Self::Warn,
            LogLevel::Error => Self::Error,
        }
    }
}
