//! From a pattern to its automaton, in one pass from left to right.

use super::automaton::{Class, Program, Step};
use super::{GlobError, MAX_BRACE_DEPTH, MAX_PATTERN_BYTES, Reading};

pub(super) fn compile(pattern: &str, reading: Reading) -> Result<Program, GlobError> {
    if pattern.is_empty() {
        return Err(GlobError::Empty);
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(GlobError::TooLong { length: pattern.len() });
    }
    if let Some(at) = pattern.find('\0') {
        return Err(GlobError::Nul { at });
    }
    let mut compiler =
        Compiler { pattern, reading, at: 0, steps: Vec::new(), braces: Vec::new(), closed_at_folder: false };
    compiler.run()?;
    Ok(Program { steps: compiler.steps })
}

struct Compiler<'a> {
    pattern: &'a str,
    reading: Reading,
    /// The byte that is read next.
    at: usize,
    steps: Vec<Step>,
    braces: Vec<Brace>,
    /// Whether some alternative of the brace that was closed last ended where a folder can begin.
    closed_at_folder: bool,
}

/// A `{` that is open.
struct Brace {
    at: usize,
    /// Whether a folder can begin right here: then it can at the beginning of each alternative.
    begins_folder: bool,
    /// The split before the current alternative; its second target is the next alternative.
    split: usize,
    /// Whether some alternative so far ended where a folder can begin.
    ends_at_folder: bool,
    /// The jumps at the end of each finished alternative, to be pointed behind the `}`.
    ends: Vec<usize>,
}

impl Compiler<'_> {
    fn run(&mut self) -> Result<(), GlobError> {
        while let Some(c) = self.rest().chars().next() {
            if self.is_path() && self.braces.is_empty() && self.rest() == "/**" {
                self.folder_and_below();
                break;
            }
            match c {
                '*' => self.star(),
                '?' => self.one(),
                '[' => self.class()?,
                '{' => self.open()?,
                ',' if !self.braces.is_empty() => self.alternative(),
                '}' if !self.braces.is_empty() => self.close(),
                '\\' => self.escape()?,
                c => self.literal(c),
            }
        }
        if let Some(brace) = self.braces.first() {
            return Err(GlobError::UnclosedBrace { at: brace.at });
        }
        self.steps.push(Step::Match);
        Ok(())
    }

    fn rest(&self) -> &str {
        &self.pattern[self.at..]
    }

    fn is_path(&self) -> bool {
        match self.reading {
            Reading::Name => false,
            Reading::Path | Reading::LoosePath => true,
        }
    }

    fn any(&self) -> Step {
        match self.reading {
            Reading::Name | Reading::LoosePath => Step::Any,
            Reading::Path => Step::AnyInFolder,
        }
    }

    fn literal(&mut self, c: char) {
        self.at += c.len_utf8();
        self.steps.push(Step::Char(c));
    }

    fn one(&mut self) {
        self.at += 1;
        let any = self.any();
        self.steps.push(any);
    }

    fn escape(&mut self) -> Result<(), GlobError> {
        self.at += 1;
        let escaped = self.rest().chars().next().ok_or(GlobError::DanglingEscape)?;
        self.literal(escaped);
        Ok(())
    }

    fn star(&mut self) {
        let begins_folder = self.begins_folder();
        let stars = self.rest().len() - self.rest().trim_start_matches('*').len();
        self.at += stars;
        if self.is_path() && stars >= 2 && begins_folder && self.rest().starts_with('/') {
            self.at += 1;
            self.folders();
        } else {
            let any = if stars >= 2 { Step::Any } else { self.any() };
            self.repeat(any);
        }
    }

    /// Whether the part before this place is empty or ends with `/`.
    fn begins_folder(&self) -> bool {
        match self.pattern[..self.at].chars().next_back() {
            None | Some('/') => true,
            // Of several alternatives one is enough: the pattern then covers what each would cover alone.
            Some('}') => self.closed_at_folder,
            Some('{' | ',') => self.braces.last().is_some_and(|brace| brace.begins_folder),
            Some(_) => false,
        }
    }

    /// `any*`
    fn repeat(&mut self, any: Step) {
        let split = self.steps.len();
        self.steps.extend([Step::Split(split + 1, split + 3), any, Step::Jump(split)]);
    }

    /// `**/`: `(any* '/')?`
    fn folders(&mut self) {
        let split = self.steps.len();
        self.steps.push(Step::Split(split + 1, split + 5));
        self.repeat(Step::Any);
        self.steps.push(Step::Char('/'));
    }

    /// `/**` at the end: `('/' any*)?`
    fn folder_and_below(&mut self) {
        self.at = self.pattern.len();
        let split = self.steps.len();
        self.steps.extend([Step::Split(split + 1, split + 5), Step::Char('/')]);
        self.repeat(Step::Any);
    }

    fn class(&mut self) -> Result<(), GlobError> {
        let open = self.at;
        self.at += 1;
        let negated = self.rest().starts_with(['!', '^']);
        self.at += usize::from(negated);
        let mut ranges = Vec::new();
        loop {
            let start = self.at;
            let c = self.member(open)?;
            // A bracket that comes first is a member: an empty class would match nothing.
            if c == Member::Close && !ranges.is_empty() {
                break;
            }
            let first = c.char();
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            if !is_range {
                ranges.push((first, first));
                continue;
            }
            self.at += 1;
            let last = self.member(open)?.char();
            if first > last {
                return Err(GlobError::BackwardRange { at: start });
            }
            ranges.push((first, last));
        }
        let crosses_folders = self.reading != Reading::Path;
        self.steps.push(Step::Class(Class { negated, ranges, crosses_folders }));
        Ok(())
    }

    fn member(&mut self, open: usize) -> Result<Member, GlobError> {
        let unclosed = GlobError::UnclosedClass { at: open };
        let c = self.rest().chars().next().ok_or(unclosed.clone())?;
        self.at += c.len_utf8();
        match c {
            ']' => Ok(Member::Close),
            '\\' => {
                let escaped = self.rest().chars().next().ok_or(unclosed)?;
                self.at += escaped.len_utf8();
                Ok(Member::Char(escaped))
            }
            c => Ok(Member::Char(c)),
        }
    }

    fn open(&mut self) -> Result<(), GlobError> {
        if self.braces.len() == MAX_BRACE_DEPTH {
            return Err(GlobError::TooDeep { at: self.at });
        }
        let begins_folder = self.begins_folder();
        let split = self.steps.len();
        self.steps.push(Step::Split(split + 1, split + 1));
        self.braces.push(Brace {
            at: self.at,
            begins_folder,
            split,
            ends_at_folder: false,
            ends: Vec::new(),
        });
        self.at += 1;
        Ok(())
    }

    fn alternative(&mut self) {
        let ends_at_folder = self.begins_folder();
        self.at += 1;
        let here = self.steps.len();
        if let Some(brace) = self.braces.last_mut() {
            // The jump ends this alternative; the split behind it begins the next.
            brace.ends_at_folder |= ends_at_folder;
            brace.ends.push(here);
            self.steps[brace.split] = Step::Split(brace.split + 1, here + 1);
            brace.split = here + 1;
            self.steps.extend([Step::Jump(here), Step::Split(here + 2, here + 2)]);
        }
    }

    fn close(&mut self) {
        let ends_at_folder = self.begins_folder();
        self.at += 1;
        let behind = self.steps.len();
        let Some(brace) = self.braces.pop() else { return };
        self.closed_at_folder = brace.ends_at_folder || ends_at_folder;
        for end in brace.ends {
            self.steps[end] = Step::Jump(behind);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Char(char),
    Close,
}

impl Member {
    fn char(self) -> char {
        match self {
            Member::Char(c) => c,
            Member::Close => ']',
        }
    }
}
