//! How a channel ends, in the words of exit records.

use outrigger_wire::line::LineError;
use outrigger_wire::peer::End;

use crate::protocol::ExitKind;

/// How a channel ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelEnd {
    /// What it counts as, if the process is not asked to leave anyway.
    pub kind: ExitKind,
    /// In words.
    pub detail: String,
}

impl ChannelEnd {
    /// What an end of the conversation counts as.
    ///
    /// A violation is a frame overrun if its reason begins with that word; whoever ends a conversation for too many long
    /// lines has to say so.
    #[must_use]
    pub fn of(end: &End) -> Self {
        let kind = match end {
            End::Closed | End::Dropped => ExitKind::Requested,
            End::RemoteClosed | End::Read { .. } | End::Write { .. } => ExitKind::ChannelLost,
            End::Line(LineError::Truncated { .. }) => ExitKind::ChannelLost,
            End::Line(LineError::TooLong { .. } | LineError::Overrun { .. }) => ExitKind::FrameOverrun,
            End::Line(_) => ExitKind::ProtocolViolation,
            End::Violation(reason) if reason.starts_with(ExitKind::FrameOverrun.as_str()) => {
                ExitKind::FrameOverrun
            }
            End::Violation(_) => ExitKind::ProtocolViolation,
            End::WriteStall { .. } => ExitKind::WriteStall,
        };
        Self { kind, detail: end.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_end_has_its_kind() {
        let kind = |end: End| ChannelEnd::of(&end).kind;
        assert_eq!(kind(End::Closed), ExitKind::Requested);
        assert_eq!(kind(End::RemoteClosed), ExitKind::ChannelLost);
        assert_eq!(kind(End::Read { message: "reset".into() }), ExitKind::ChannelLost);
        assert_eq!(kind(End::Violation("frame_overrun: 3 long lines".into())), ExitKind::FrameOverrun);
        assert_eq!(kind(End::Violation("protocol_violation".into())), ExitKind::ProtocolViolation);
        let stall = End::WriteStall { after: Duration::from_secs(10), queued: 7 };
        assert_eq!(kind(stall.clone()), ExitKind::WriteStall);
        assert!(ChannelEnd::of(&stall).detail.contains("7 bytes were waiting"));
    }
}
