//! The image's code and the loaded programs, behind one table of functions. Immutable while a run lasts, so the loop borrows
//! from it.

use super::library::Library;
use crate::code::{Base, Function, Op, Program, SourceText, WINDOW};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// All loaded code.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// What the image came with. Nothing while the image is being made: its files are programs then.
    library: Arc<Library>,
    /// The instructions of the library, padded by a window.
    library_code: &'static [Op],
    pub(crate) programs: Vec<Arc<Program>>,
    /// How many instructions the programs have.
    own: usize,
    /// For each function that is not the library's: its program and its place there.
    functions: Vec<(u32, u32)>,
    /// For each function: what entering it needs, in one place.
    entries: Vec<Entry>,
    /// How the programs are spelled in a snapshot, once somebody has asked.
    spelled: OnceLock<Arc<[u8]>>,
}

/// Code that is being run: its tables, and where its programs are laid out. One reference for the loop to keep.
#[derive(Debug)]
pub(crate) struct Running<'c> {
    pub(super) code: &'c Code,
    pub(super) stage: &'c [Op],
}

impl Deref for Running<'_> {
    type Target = Code;

    #[inline]
    fn deref(&self) -> &Code {
        self.code
    }
}

/// What entering a function needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(super) whose: Whose,
    /// Its first instruction: in the library, or counted through all programs.
    pub(super) start: u32,
    pub(crate) registers: u16,
    pub(crate) parameters: u16,
    pub(crate) keeps_arguments: bool,
}

/// Where a function's instructions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Library,
    Program,
}

impl Code {
    /// The library's functions and no others.
    pub(crate) fn of(library: Library, entries: Vec<Entry>) -> Code {
        let library_code = library.code;
        let (programs, functions) = (Vec::new(), Vec::new());
        let (library, spelled) = (Arc::new(library), OnceLock::new());
        Code { library, library_code, programs, own: 0, functions, entries, spelled }
    }

    pub(crate) fn add(&mut self, program: Arc<Program>) {
        self.spelled = OnceLock::new();
        let number = self.programs.len() as u32;
        self.functions.extend((0..program.functions.len() as u32).map(|i| (number, i)));
        self.entries.extend(program.functions.iter().map(|f| Entry {
            whose: Whose::Program,
            start: self.own as u32 + f.start,
            registers: f.registers,
            parameters: f.parameters,
            keeps_arguments: f.keeps_arguments,
        }));
        self.own += program.code.len();
        self.programs.push(program);
    }

    /// What its tables take, without the programs.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.entries[..]) + size_of_val(&self.functions[..])
    }

    /// How the programs are spelled in a snapshot; `spell` says it the first time.
    pub(crate) fn spelled(&self, spell: impl FnOnce() -> Arc<[u8]>) -> Arc<[u8]> {
        Arc::clone(self.spelled.get_or_init(spell))
    }

    /// What the next program must be compiled on.
    pub(crate) fn base(&self) -> Base {
        let mut base = self.library.end;
        for p in &self.programs {
            base.functions += p.functions.len() as u32;
            base.constants += p.constants.len() as u32;
            base.sites += p.sites.len() as u32;
            base.templates += p.templates.len() as u32;
        }
        base
    }

    #[inline]
    pub(crate) fn function(&self, index: u32) -> &Function {
        let Some(own) = index.checked_sub(self.library.end.functions) else {
            return self.library.function(index);
        };
        let (program, place) = self.functions[own as usize];
        &self.programs[program as usize].functions[place as usize]
    }

    /// The text that a function is from.
    fn source(&self, index: u32) -> &SourceText {
        let Some(own) = index.checked_sub(self.library.end.functions) else {
            return self.library.source(index);
        };
        let (program, _) = self.functions[own as usize];
        &self.programs[program as usize].source
    }

    /// How many functions there are.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Entry {
        self.entries[index as usize]
    }

    /// Are these the same programs, in the same order?
    pub(super) fn has_programs_of(&self, other: &Code) -> bool {
        let same = |(a, b)| Arc::ptr_eq(a, b);
        self.programs.len() == other.programs.len() && self.programs.iter().zip(&other.programs).all(same)
    }

    /// How many instructions [`Code::lay_out`] needs room for.
    pub(super) fn own_len(&self) -> usize {
        self.own
    }

    /// Copies the instructions of all programs, one after the other, to where a run finds them.
    pub(super) fn lay_out(&self, stage: &mut [Op]) {
        let mut rest = stage;
        for program in &self.programs {
            let Some((place, after)) = rest.split_at_mut_checked(program.code.len()) else { return };
            place.copy_from_slice(&program.code);
            rest = after;
        }
    }

    /// The page of a function that an instruction is in, with room for any `u16`. `stage` is what [`Code::lay_out`] filled, and a
    /// window more.
    #[inline]
    pub(crate) fn window<'o>(&self, stage: &'o [Op], entry: Entry, pc: u32) -> &'o [Op; WINDOW] {
        let start = entry.start as usize + (pc as usize & !(WINDOW - 1));
        let code = match entry.whose {
            Whose::Library => self.library_code,
            Whose::Program => stage,
        };
        match code.get(start..).and_then(|w| w.first_chunk()) {
            Some(window) => window,
            // Both are padded by a window, so every start has one; this window only returns.
            None => &IDLE,
        }
    }

    /// The text of a function.
    pub(crate) fn source_of(&self, function: u32) -> &str {
        let (from, to) = self.function(function).span;
        self.source(function).get(from as usize..to as usize).unwrap_or("")
    }

    /// The line and column (in UTF-16 units) of a source offset, both from 1.
    pub(crate) fn line_column(&self, function: u32, offset: u32) -> (u32, u32) {
        self.source(function).position(offset)
    }

    /// The text of the line that a source offset is in, and how many characters of it are before.
    pub(crate) fn line_at(&self, function: u32, offset: u32) -> Option<(&str, usize)> {
        let source = self.source(function);
        let before = source.get(..offset as usize)?;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = source.get(start..)?.split('\n').next()?;
        Some((line.trim_end(), before.get(start..)?.chars().count()))
    }

    /// The source from an offset on.
    pub(crate) fn text_from(&self, function: u32, offset: u32) -> &str {
        self.source(function).get(offset as usize..).unwrap_or("")
    }

    /// An instruction of a function.
    pub(crate) fn op(&self, function: u32, pc: u32) -> Op {
        let (code, start) = match function.checked_sub(self.library.end.functions) {
            None => (self.library_code, self.entry(function).start),
            Some(own) => {
                let (program, place) = self.functions[own as usize];
                let program = &self.programs[program as usize];
                (&program.code[..], program.functions[place as usize].start)
            }
        };
        code.get(start as usize + pc as usize).copied().unwrap_or(Op::RetUndef)
    }
}

static IDLE: [Op; WINDOW] = [Op::RetUndef; WINDOW];
