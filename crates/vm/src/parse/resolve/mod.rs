//! Where each name leads: the second pass, over a complete tree with all declarations known.
//!
//! The walk keeps, for each name, the innermost binding in scope. A use from an inner function makes the binding
//! captured and adds it to the captures of every function in between, so that closures are flat copies.

mod names;
mod walk;

use rustc_hash::FxHashMap;

use super::declare::Declarations;
use super::diagnostic::Diagnostic;
use super::options::Options;
use crate::ast::{Atom, BindingId, FunctionId, List, Listed, Program, ScopeId};

pub(super) fn resolve(
    program: Program,
    declarations: &Declarations,
    options: &Options,
    source: &str,
) -> Result<Program, Vec<Diagnostic>> {
    let names = program.texts.len();
    let declared = program.bindings.len();
    let functions = program.functions.len();
    let refused = names::refused_atoms(&program, options);
    let mut resolver = Resolver {
        program,
        declarations,
        options,
        source,
        active: vec![None; names],
        undo: Vec::new(),
        frames: Vec::new(),
        frame_of: vec![0; functions],
        slots: FxHashMap::default(),
        used: vec![false; declared],
        scope: None,
        refused,
        problems: Vec::new(),
    };
    resolver.function(Program::SCRIPT, 0, None);
    resolver.forget_unused_own_names();
    let Resolver { program, mut problems, .. } = resolver;
    if problems.is_empty() {
        return Ok(program);
    }
    problems.sort_by_key(|problem| problem.span.start);
    Err(problems)
}

struct Resolver<'a> {
    program: Program,
    declarations: &'a Declarations,
    options: &'a Options,
    source: &'a str,
    /// The innermost binding of each atom.
    active: Vec<Option<BindingId>>,
    undo: Vec<(Atom, Option<BindingId>)>,
    /// The functions around the place, the script first.
    frames: Vec<Frame>,
    /// Where in `frames` a function is, while it is there.
    frame_of: Vec<usize>,
    /// Which capture of a function a binding is.
    slots: FxHashMap<(FunctionId, BindingId), u32>,
    /// Which function's and class's own names are used.
    used: Vec<bool>,
    scope: Option<ScopeId>,
    refused: Vec<Atom>,
    problems: Vec<Diagnostic>,
}

struct Frame {
    function: FunctionId,
    /// The function object does not exist before execution passes this byte of the function around it.
    exists_from: u32,
    /// The class that the function is an element of: it runs after the class's own name is initialised.
    class_scope: Option<ScopeId>,
    captures: Vec<BindingId>,
}

impl Resolver<'_> {
    fn push_frame(&mut self, function: FunctionId, exists_from: u32, class_scope: Option<ScopeId>) {
        self.program.functions[function.index()].parent = self.frames.last().map(|frame| frame.function);
        self.frame_of[function.index()] = self.frames.len();
        self.frames.push(Frame { function, exists_from, class_scope, captures: Vec::new() });
    }

    fn pop_frame(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let table = BindingId::table_mut(&mut self.program);
        let start = table.len() as u32;
        table.extend_from_slice(&frame.captures);
        let captures = List::new(start, frame.captures.len() as u32);
        self.program.functions[frame.function.index()].captures = captures;
    }

    fn forget_unused_own_names(&mut self) {
        let used = &self.used;
        let is_used = |binding: &BindingId| used.get(binding.index()).copied().unwrap_or(true);
        for function in &mut self.program.functions {
            function.self_name = function.self_name.filter(is_used);
        }
        for class in &mut self.program.classes {
            class.inner_name = class.inner_name.filter(is_used);
        }
    }
}
