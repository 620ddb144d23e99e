//! When a turn is over. Claude Code takes messages while it works: one that comes at the border of a tool belongs to the turn, one
//! that comes in the last text becomes a turn of its own after the `result`. So a result alone ends nothing.

/// How far a turn is. Pure: the loop tells it what it sees and asks whether that is the end.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Messages of ours whose fate is not known yet.
    open: Vec<String>,
    written: u32,
    results: u32,
    /// The program says what becomes of messages.
    tracks: bool,
    /// The program says when it is idle.
    reports: bool,
    has_run: bool,
    idle: bool,
}

/// Whether the turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It goes on.
    NotYet,
    /// It is, if nothing more is heard for a moment: the program does not say it more clearly, or a message of ours may just
    /// have crossed its last word.
    Soon,
    /// It is.
    Now,
}

impl Progress {
    /// The next turn with the same program, which does not unlearn to say what becomes of messages.
    pub(super) fn next(&self) -> Self {
        Self { tracks: self.tracks, ..Self::default() }
    }

    /// A message of ours was written.
    pub(super) fn wrote(&mut self, uuid: String) {
        self.open.push(uuid);
        self.written += 1;
    }

    /// The program said what became of one.
    pub(super) fn message(&mut self, uuid: &str, state: &str) {
        self.tracks = true;
        if matches!(state, "completed" | "cancelled") {
            self.open.retain(|open| open != uuid);
        }
    }

    /// The program said what it does.
    pub(super) fn state(&mut self, state: &str) {
        self.reports = true;
        self.idle = state == "idle";
        self.has_run |= !self.idle;
    }

    /// A `result` came.
    pub(super) fn result(&mut self) {
        self.results += 1;
        self.has_run = true;
    }

    /// Whether that is the end.
    pub(super) fn end(&self) -> End {
        if self.reports && !self.idle {
            return End::NotYet;
        }
        match (self.results, self.all_done()) {
            // A command that only the program itself understood may end without a result.
            (0, true) if self.reports && self.has_run => End::Soon,
            (0, _) => End::NotYet,
            (_, true) => End::Now,
            (_, false) => End::Soon,
        }
    }

    /// Whether everything we wrote has had its result, whatever the program does now.
    pub(super) fn all_answered(&self) -> bool {
        self.results > 0 && self.all_done()
    }

    fn all_done(&self) -> bool {
        if self.tracks { self.open.is_empty() } else { self.results >= self.written }
    }

    /// Whether the program has begun with what we wrote.
    pub(super) fn has_run(&self) -> bool {
        self.has_run
    }

    /// Whether the program does nothing, as after an interruption.
    pub(super) fn rests(&self) -> bool {
        if self.reports { self.idle } else { self.results > 0 }
    }

    /// The messages whose fate is not known yet.
    pub(super) fn open(&self) -> &[String] {
        &self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(messages: &[&str]) -> Progress {
        let mut progress = Progress::default();
        for message in messages {
            progress.wrote((*message).to_owned());
        }
        progress
    }

    #[test]
    fn a_result_ends_nothing_before_the_program_is_idle() {
        let mut progress = with(&["a"]);
        progress.state("running");
        progress.message("a", "started");
        progress.result();
        assert_eq!(progress.end(), End::NotYet);
        progress.message("a", "completed");
        assert_eq!(progress.end(), End::NotYet);
        progress.state("idle");
        assert_eq!(progress.end(), End::Now);
    }

    #[test]
    fn a_message_in_the_last_text_is_waited_for() {
        let mut progress = with(&["a", "b"]);
        progress.state("running");
        progress.result();
        progress.message("a", "completed");
        progress.message("b", "started");
        assert_eq!(progress.end(), End::NotYet);
        progress.result();
        progress.message("b", "completed");
        progress.state("idle");
        assert_eq!(progress.end(), End::Now);
    }

    #[test]
    fn a_message_that_crossed_the_last_word_is_given_a_moment() {
        let mut progress = with(&["a"]);
        progress.state("running");
        progress.message("a", "completed");
        progress.result();
        progress.wrote("b".to_owned());
        progress.state("idle");
        assert_eq!(progress.end(), End::Soon);
        progress.message("b", "queued");
        progress.state("running");
        assert_eq!(progress.end(), End::NotYet);
    }

    #[test]
    fn a_message_taken_at_the_border_of_a_tool_needs_no_result_of_its_own() {
        let mut progress = with(&["a", "b"]);
        progress.state("running");
        progress.message("b", "completed");
        progress.result();
        progress.message("a", "completed");
        progress.state("idle");
        assert_eq!(progress.end(), End::Now);
    }

    #[test]
    fn a_program_that_says_neither_is_judged_by_its_results() {
        let mut progress = with(&["a"]);
        assert_eq!(progress.end(), End::NotYet);
        progress.result();
        assert_eq!(progress.end(), End::Now);
        progress.wrote("b".to_owned());
        assert_eq!(progress.end(), End::Soon, "perhaps it was taken at the border of a tool");
        progress.result();
        assert_eq!(progress.end(), End::Now);
    }

    #[test]
    fn what_the_program_did_before_the_message_does_not_end_the_turn() {
        let mut before = with(&["z"]);
        before.message("z", "completed");
        let mut progress = before.next();
        progress.wrote("a".to_owned());
        progress.result();
        progress.state("idle");
        assert_ne!(progress.end(), End::Now, "that was not the result of our message");
    }

    #[test]
    fn a_command_that_ends_without_a_result_ends_the_turn_after_a_moment() {
        let mut progress = with(&["/local"]);
        progress.state("running");
        progress.message("/local", "completed");
        assert_eq!(progress.end(), End::NotYet);
        progress.state("idle");
        assert_eq!(progress.end(), End::Soon);
        let mut never_ran = with(&["a"]);
        never_ran.state("idle");
        assert_eq!(never_ran.end(), End::NotYet);
    }

    #[test]
    fn waiting_for_a_person_is_not_idle() {
        let mut progress = with(&["a"]);
        progress.state("requires_action");
        assert!(progress.has_run() && !progress.rests());
        progress.state("idle");
        assert!(progress.rests());
    }
}
