//! From the resolved tree to instructions.
//!
//! Every function of the tree is compiled by itself, in the order of the tree's table; a closure names its function
//! by number, and the resolver already listed what it captures, so functions need not wait for each other. Long left
//! spines (sums, member chains, `else if`) are walked with loops; every other descent is bounded by the parser's
//! nesting limit and counted again here.
//!
//! Rooms: `emit` is one function under construction, `paged` what becomes of a long one; `function` prologues; `variable`
//! where names live; `expr`, `literal`, `condition`, `chain` (members and calls), `assign` (targets and patterns), `stmt`,
//! `control` (leaving blocks through `finally` and iterators), `iterate` (loops), `class`.

mod assign;
mod chain;
mod class;
mod condition;
mod control;
mod emit;
mod expr;
mod function;
mod iterate;
mod literal;
mod paged;
mod stmt;
mod variable;

use crate::ast::{Atom, FunctionId, Program as Tree, Span, Text};
use crate::code::{Base, Constant, Function, Op, Program, Template};
use control::Control;
pub(crate) use emit::MAX_REGISTERS;
use emit::{Emitter, Overflow};
use rustc_hash::FxHashMap;
use variable::{Home, Place};

/// Whose source is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A guest's script: its top-level names are its own.
    Guest,
    /// A script whose top-level names every script of the machine sees, as the language has it for web pages.
    Shared,
    /// The engine's own prelude: its functions do not show in tracebacks.
    Prelude,
}

/// Why a valid script could not be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Too many values alive at once.
    #[error(
        "function needs more than {} registers: it has too many variables or arguments",
        emit::MAX_REGISTERS
    )]
    TooManyRegisters {
        /// The function.
        span: Span,
    },
    /// Too much code in one function.
    #[error("function is larger than {} instructions", emit::MAX_INSTRUCTIONS)]
    TooLarge {
        /// The function.
        span: Span,
    },
    /// Expressions nested deeper than the compiler follows.
    #[error("source is nested too deeply")]
    TooDeep {
        /// The function.
        span: Span,
    },
    /// A `%Name` that is no intrinsic (prelude only).
    #[error("unknown intrinsic")]
    UnknownIntrinsic {
        /// The function.
        span: Span,
    },
}

/// How deep the compiler follows nesting that the parser already bounded.
const MAX_DEPTH: u32 = 4_000;

/// Compiles a script on top of what `base` says is taken.
pub fn compile(tree: &Tree, base: Base, source: Source) -> Result<Program, CompileError> {
    let mut compiler = Compiler::new(tree, base, source);
    for index in 0..tree.functions().len() {
        let id = FunctionId::from_index(index);
        match compiler.function(id, Home::Registers) {
            Err(CompileError::TooManyRegisters { .. }) => compiler.function(id, Home::Record)?,
            result => result?,
        }
    }
    compiler.finish_captures();
    Ok(compiler.finish())
}

/// The whole compilation: shared tables, and the function at hand.
struct Compiler<'t> {
    tree: &'t Tree,
    base: Base,
    source: Source,
    code: Vec<Op>,
    /// By number; default constructors follow the tree's own functions.
    functions: Vec<Option<Function>>,
    /// Names that the place of a function expression gives it, by function.
    names: FxHashMap<u32, u32>,
    /// The text of class constructors is the whole class.
    spans: FxHashMap<u32, (u32, u32)>,
    constants: Vec<Constant>,
    strings: FxHashMap<Atom, u32>,
    texts: FxHashMap<Vec<u16>, u32>,
    numbers: FxHashMap<u64, u32>,
    sites: Vec<u32>,
    templates: Vec<Template>,
    places: Vec<Place>,
    // The function at hand.
    emit: Emitter,
    current: FunctionId,
    control: Vec<Control>,
    /// Where its variables live, and the register of their record if they live there.
    home: Home,
    record: u8,
    /// Receives the value of expression statements: the script's result.
    completion: Option<u8>,
    depth: u32,
    /// Whether the script's top-level names are seen by other scripts.
    shared: bool,
    failed: Option<CompileError>,
}

impl<'t> Compiler<'t> {
    fn new(tree: &'t Tree, base: Base, source: Source) -> Self {
        Compiler {
            tree,
            base,
            source,
            code: Vec::new(),
            functions: vec![None; tree.functions().len()],
            names: FxHashMap::default(),
            spans: FxHashMap::default(),
            constants: Vec::new(),
            strings: FxHashMap::default(),
            texts: FxHashMap::default(),
            numbers: FxHashMap::default(),
            sites: Vec::new(),
            templates: Vec::new(),
            places: vec![Place::Unplaced; tree.bindings().len()],
            emit: Emitter::new(),
            current: Tree::SCRIPT,
            control: Vec::new(),
            home: Home::Registers,
            record: 0,
            completion: None,
            depth: 0,
            shared: source == Source::Shared,
            failed: None,
        }
    }

    fn finish(mut self) -> Program {
        for (index, name) in &self.names {
            if let Some(Some(function)) = self.functions.get_mut(*index as usize)
                && function.name.is_none()
            {
                function.name = Some(*name);
            }
        }
        for (index, span) in &self.spans {
            if let Some(Some(function)) = self.functions.get_mut(*index as usize) {
                function.span = *span;
            }
        }
        Program {
            base: self.base,
            code: self.code,
            functions: self.functions.into_iter().flatten().collect(),
            constants: self.constants,
            sites: self.sites,
            templates: self.templates,
            source: "".into(),
        }
    }

    /// Takes over a finished function.
    fn install(&mut self, index: usize, mut function: Function, code: &[Op]) {
        function.start = self.code.len() as u32;
        self.code.extend_from_slice(code);
        if self.functions.len() <= index {
            self.functions.resize(index + 1, None);
        }
        self.functions[index] = Some(function);
    }

    fn overflowed(&self, span: Span) -> Option<CompileError> {
        self.failed.or(match self.emit.overflow {
            Some(Overflow::Registers) => Some(CompileError::TooManyRegisters { span }),
            Some(Overflow::Instructions) => Some(CompileError::TooLarge { span }),
            None => None,
        })
    }

    fn string(&mut self, atom: Atom) -> u32 {
        if let Some(&k) = self.strings.get(&atom) {
            return k;
        }
        let units: Vec<u16> = match self.tree.text(atom) {
            Text::Latin1(units) => units.iter().map(|&u| u16::from(u)).collect(),
            Text::Wide(units) => units.to_vec(),
        };
        let k = self.units(units);
        self.strings.insert(atom, k);
        k
    }

    fn text(&mut self, text: &str) -> u32 {
        self.units(text.encode_utf16().collect())
    }

    fn units(&mut self, units: Vec<u16>) -> u32 {
        if let Some(&k) = self.texts.get(&units) {
            return k;
        }
        let k = self.constant(Constant::String(units.clone()));
        self.texts.insert(units, k);
        k
    }

    fn number(&mut self, number: f64) -> u32 {
        if let Some(&k) = self.numbers.get(&number.to_bits()) {
            return k;
        }
        let k = self.constant(Constant::Number(number));
        self.numbers.insert(number.to_bits(), k);
        k
    }

    fn constant(&mut self, constant: Constant) -> u32 {
        self.constants.push(constant);
        self.base.constants + self.constants.len() as u32 - 1
    }

    /// A new property site for the key in constant `k`.
    fn site(&mut self, k: u32) -> u32 {
        self.sites.push(k);
        self.base.sites + self.sites.len() as u32 - 1
    }

    fn atom_site(&mut self, atom: Atom) -> u32 {
        let k = self.string(atom);
        self.site(k)
    }
}
