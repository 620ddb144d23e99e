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
        self.enter(&mut now, 0);
        for c in text.chars() {
            if now.list.is_empty() {
                return false;
            }
            next.clear();
            for at in 0..now.list.len() {
                let state = now.list[at];
                if self.steps[state].consumes(c) {
                    self.enter(&mut next, state + 1);
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.list.iter().any(|state| matches!(self.steps[*state], Step::Match))
    }

    /// Adds `state` and everything that is reached from it without consuming a character.
    fn enter(&self, states: &mut States, state: usize) {
        let mut pending = vec![state];
        while let Some(state) = pending.pop() {
            if std::mem::replace(&mut states.entered[state], true) {
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

/// A set of states that remembers its members in a list, so that walking it costs what it holds.
struct States {
    list: Vec<usize>,
    entered: Vec<bool>,
}

impl States {
    fn new(size: usize) -> States {
        States { list: Vec::with_capacity(size), entered: vec![false; size] }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.entered.fill(false);
    }
}
