//! The loaded programs, behind one table of functions. Immutable while a run lasts, so the loop borrows from it.

use crate::code::{Function, Op, Program, WINDOW};
use std::sync::Arc;

/// All loaded code.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) programs: Vec<Arc<Program>>,
    /// For each function: its program and its place there.
    functions: Vec<(u32, u32)>,
    /// For each function: what entering it needs, in one place.
    entries: Vec<Entry>,
}

/// What entering a function needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    program: u32,
    start: u32,
    pub(crate) registers: u16,
    pub(crate) parameters: u16,
    pub(crate) keeps_arguments: bool,
}

impl Code {
    pub(crate) fn new() -> Code {
        Code { programs: Vec::new(), functions: Vec::new(), entries: Vec::new() }
    }

    pub(crate) fn add(&mut self, program: Arc<Program>) {
        let number = self.programs.len() as u32;
        self.functions.extend((0..program.functions.len() as u32).map(|i| (number, i)));
        self.entries.extend(program.functions.iter().map(|f| Entry {
            program: number,
            start: f.start,
            registers: f.registers,
            parameters: f.parameters,
            keeps_arguments: f.keeps_arguments,
        }));
        self.programs.push(program);
    }

    /// What the next program must be compiled on.
    pub(crate) fn base(&self) -> crate::code::Base {
        let mut base = crate::code::Base::ZERO;
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
        let (program, place) = self.functions[index as usize];
        &self.programs[program as usize].functions[place as usize]
    }

    /// How many functions there are.
    pub(crate) fn len(&self) -> u32 {
        self.functions.len() as u32
    }

    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Entry {
        self.entries[index as usize]
    }

    /// The page of a function that an instruction is in, with room for any `u16`.
    #[inline]
    pub(crate) fn window(&self, entry: Entry, pc: u32) -> &[Op; WINDOW] {
        let start = entry.start as usize + (pc as usize & !(WINDOW - 1));
        let code = &self.programs[entry.program as usize].code;
        match code.get(start..).and_then(|w| w.first_chunk()) {
            Some(window) => window,
            // Programs are padded by a window, so every start has one; this window only returns.
            None => &IDLE,
        }
    }

    /// The text of a function.
    pub(crate) fn source_of(&self, function: u32) -> &str {
        let (program, _) = self.functions[function as usize];
        let (from, to) = self.function(function).span;
        self.programs[program as usize].source.get(from as usize..to as usize).unwrap_or("")
    }

    /// The line and column (in UTF-16 units) of a source offset, both from 1.
    pub(crate) fn line_column(&self, function: u32, offset: u32) -> (u32, u32) {
        let (program, _) = self.functions[function as usize];
        self.programs[program as usize].source.position(offset)
    }

    /// The text of the line that a source offset is in, and how many characters of it are before.
    pub(crate) fn line_at(&self, function: u32, offset: u32) -> Option<(&str, usize)> {
        let (program, _) = self.functions[function as usize];
        let source = &self.programs[program as usize].source;
        let before = source.get(..offset as usize)?;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = source.get(start..)?.split('\n').next()?;
        Some((line.trim_end(), before.get(start..)?.chars().count()))
    }

    /// The source from an offset on.
    pub(crate) fn text_from(&self, function: u32, offset: u32) -> &str {
        let (program, _) = self.functions[function as usize];
        self.programs[program as usize].source.get(offset as usize..).unwrap_or("")
    }

    pub(crate) fn op(&self, function: u32, pc: u32) -> Op {
        self.window(self.entry(function), pc)[pc as usize & (WINDOW - 1)]
    }
}

static IDLE: [Op; WINDOW] = [Op::RetUndef; WINDOW];
