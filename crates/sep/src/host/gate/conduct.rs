//! How an extension is borne with: what it is told when it breaks a rule, and how often in how short a time it may do so
//! before it is shown the door.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_policy::Millis;
use outrigger_wire::line::Defect as LineDefect;
use outrigger_wire::peer::{Complaint, Reaction};
use outrigger_wire::rpc::{Defect, Refusal};

use super::ports::Offence;
use super::serve::Shared;
use crate::protocol::{ExitKind, Fault, LogLevel, ParseFault, RequestFault};

/// What an extension has done wrong lately.
#[derive(Debug)]
pub(super) struct Conduct {
    bad_frames: Patience,
    oversize: Patience,
    unknown_replies: Patience,
    late_replies: Patience,
}

impl Conduct {
    pub(super) fn new() -> Self {
        Self {
            bad_frames: Patience::new(20),
            oversize: Patience::new(2),
            unknown_replies: Patience::new(10),
            // An extension that was stopped for a while answers everything late and at once; that is no offence.
            late_replies: Patience::new(100),
        }
    }
}

impl Shared {
    /// Decides about something irregular.
    pub(super) fn complain(&self, complaint: &Complaint<'_>) -> Reaction {
        match complaint {
            Complaint::Refused(refusal) => self.refused(refusal),
            Complaint::Defective(defect) => self.bad_frame(&Fault::Parse(match defect {
                LineDefect::NotUtf8 { .. } => ParseFault::InvalidUtf8,
                LineDefect::Nul { .. } | LineDefect::Bom => ParseFault::InvalidJson,
            })),
            Complaint::TooLong { limit, .. } => {
                self.offence(Offence::FrameOversize);
                let answer = Fault::TooLarge { limit: *limit };
                self.judge(ExitKind::FrameOverrun, Some(&answer), |conduct| &mut conduct.oversize)
            }
            Complaint::Blank => {
                // It is a frame, so it costs what a frame costs; there is nobody to tell that there were too many.
                let _ = self.take_token();
                Reaction::Ignore
            }
            Complaint::Busy { limit } => self.refuse(&Fault::TooManyInFlight { limit: *limit }),
            Complaint::Cancelled => Reaction::Answer(Fault::Cancelled.to_error()),
            Complaint::Panicked => self.refuse(&self.failure("a handler panicked")),
            Complaint::ReplyTooLong { length, limit } => {
                self.log(
                    LogLevel::Warn,
                    &format!("an answer of {length} bytes does not fit into a frame of {limit}"),
                );
                Reaction::Answer(Fault::TooLarge { limit: *limit }.to_error())
            }
            Complaint::NotificationDropped => {
                self.offence(Offence::RateLimited);
                Reaction::Ignore
            }
            Complaint::UnknownReply | Complaint::OrphanError(_) => {
                self.offence(Offence::ProtocolViolation);
                self.judge(ExitKind::ProtocolViolation, None, |conduct| &mut conduct.unknown_replies)
            }
            Complaint::LateReply => {
                self.judge(ExitKind::ProtocolViolation, None, |conduct| &mut conduct.late_replies)
            }
        }
    }

    fn refused(&self, refusal: &Refusal) -> Reaction {
        let parse = |fault| Fault::Parse(fault);
        let fault = match refusal.defect {
            Defect::NotUtf8 => parse(ParseFault::InvalidUtf8),
            Defect::NotJson => parse(ParseFault::InvalidJson),
            Defect::TooDeep => parse(ParseFault::Depth),
            Defect::DuplicateKey => parse(ParseFault::DuplicateKey),
            Defect::BatchUnsupported | Defect::BatchEmpty | Defect::BatchTooLarge => {
                Fault::Request(RequestFault::BatchUnsupported)
            }
            Defect::BadId => Fault::Request(RequestFault::BadId),
            Defect::DuplicateId => return self.refuse(&Fault::Request(RequestFault::DuplicateId)),
            Defect::NotAnObject
            | Defect::BadVersion
            | Defect::BadMethod
            | Defect::Ambiguous
            | Defect::ReplyWithoutId
            | Defect::BadError => Fault::Request(RequestFault::BadEnvelope),
        };
        self.bad_frame(&fault)
    }

    fn bad_frame(&self, fault: &Fault) -> Reaction {
        self.offence(Offence::ProtocolViolation);
        self.judge(ExitKind::ProtocolViolation, Some(fault), |conduct| &mut conduct.bad_frames)
    }

    /// Answers an offence, and ends the conversation when it was one too many.
    fn judge(
        &self,
        end: ExitKind,
        answer: Option<&Fault>,
        patience: impl FnOnce(&mut Conduct) -> &mut Patience,
    ) -> Reaction {
        let over = patience(&mut self.books().conduct).is_over(self.gate.now());
        let answer = answer.map(Fault::to_error);
        match (over, answer) {
            (true, answer) => Reaction::End { reason: end.as_str().to_owned(), answer },
            (false, Some(answer)) => Reaction::Answer(answer),
            (false, None) => Reaction::Ignore,
        }
    }

    /// Answers a request that found no place.
    fn refuse(&self, fault: &Fault) -> Reaction {
        self.count(None, Duration::ZERO, Some(fault));
        Reaction::Answer(fault.to_error())
    }
}

/// The time in which offences are counted together.
const WINDOW_MS: u64 = 10_000;

/// Counts one kind of offence in a window that slides.
#[derive(Debug)]
pub(super) struct Patience {
    /// So many are borne with.
    borne: usize,
    times: VecDeque<Millis>,
}

impl Patience {
    pub(super) fn new(borne: usize) -> Self {
        Self { borne, times: VecDeque::new() }
    }

    /// One more. Whether it is one too many.
    pub(super) fn is_over(&mut self, now: Millis) -> bool {
        while self.times.front().is_some_and(|first| now.0.saturating_sub(first.0) >= WINDOW_MS) {
            self.times.pop_front();
        }
        self.times.push_back(now);
        // Never more than are needed to see that it is over.
        if self.times.len() > self.borne + 1 {
            self.times.pop_front();
        }
        self.times.len() > self.borne
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_with_one_too_many_in_ten_seconds_and_comes_back() {
        let mut patience = Patience::new(2);
        assert!(!patience.is_over(Millis(0)));
        assert!(!patience.is_over(Millis(1)));
        assert!(patience.is_over(Millis(9_999)), "the third within ten seconds");
        let mut patience = Patience::new(2);
        assert!(!patience.is_over(Millis(0)));
        assert!(!patience.is_over(Millis(1)));
        assert!(!patience.is_over(Millis(10_000)), "the first is ten seconds old");
        assert!(patience.is_over(Millis(10_000)));
        assert!(!patience.is_over(Millis(30_000)));
    }
}
