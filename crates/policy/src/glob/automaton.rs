//! The automaton behind a glob, and the walk through it that visits every state at most once a character.

/// One step of the program. Targets are indices into it and always lie ahead, except in [`Step::Jump`], which
/// closes the loop of a star after a character was consumed.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Char(char),
    /// Any one character.
    Any,
    /// Any one character but `/`.
    AnyInFolder,
    Class(Class),
    /// Go on at both places.
    Split(usize, usize),
    Jump(usize),
    Match,
}

#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) negated: bool,
    pub(super) ranges: Vec<(char, char)>,
    /// Whether `/` can be matched at all.
    pub(super) crosses_folders: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
}

impl Program {
    pub(super) fn literal(text: &str) -> Program {
        Program { steps: text.chars().map(Step::Char).chain([Step::Match]).collect() }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let mut now = States::new(self.steps.len());
        let mut next = States::new(self.steps.len());
        // Shared by all steps of the walk: it would otherwise be allocated once a state.
        let mut pending = Vec::new();
        self.enter(&mut now, 0, &mut pending);
        for c in text.chars() {
            if now.list.is_empty() {
                return false;
            }
            next.clear();
            for state in &now.list {
                if self.steps[*state].consumes(c) {
                    self.enter(&mut next, state + 1, &mut pending);
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.list.iter().any(|state| matches!(self.steps[*state], Step::Match))
    }

    /// Adds `state` and everything that is reached from it without consuming a character.
    fn enter(&self, states: &mut States, state: usize, pending: &mut Vec<usize>) {
        pending.push(state);
        while let Some(state) = pending.pop() {
            if !states.mark(state) {
                continue;
            }
            match self.steps[state] {
                Step::Split(one, other) => pending.extend([one, other]),
                Step::Jump(target) => pending.push(target),
                Step::Char(_) | Step::Any | Step::AnyInFolder | Step::Class(_) | Step::Match => {
                    states.list.push(state);
                }
            }
        }
    }
}

impl Step {
    fn consumes(&self, c: char) -> bool {
        match self {
            Step::Char(expected) => *expected == c,
            Step::Any => true,
            Step::AnyInFolder => c != '/',
            Step::Class(class) => class.contains(c),
            Step::Split(..) | Step::Jump(_) | Step::Match => false,
        }
    }
}

impl Class {
    fn contains(&self, c: char) -> bool {
        let listed = self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
        listed != self.negated && (c != '/' || self.crosses_folders)
    }
}

/// A set of states that remembers its members in a list, so that walking it costs what it holds and emptying it
/// costs nothing.
struct States {
    list: Vec<usize>,
    /// The round in which each state was entered last.
    entered: Vec<usize>,
    round: usize,
}

impl States {
    fn new(size: usize) -> States {
        States { list: Vec::with_capacity(size), entered: vec![0; size], round: 1 }
    }

    fn clear(&mut self) {
        self.list.clear();
        // One round a character: it cannot overflow before memory is full of text.
        self.round += 1;
    }

    /// Whether `state` was not in the set yet.
    fn mark(&mut self, state: usize) -> bool {
        std::mem::replace(&mut self.entered[state], self.round) != self.round
    }
}
