//! The code of the standard library as the image has it: one table of instructions, and functions that are read when somebody
//! asks for them.
//!
//! Running a function takes its instructions and its [`Entry`]. The rest (captures, handlers, positions, name) is needed
//! when a closure is made, something is thrown or a snapshot is checked, of a few functions in most runs; so it
//! stays in bytes, file by file.

use super::code_table::{Code, Entry, Whose};
use crate::builtins;
use crate::code::{Base, Function, FunctionKind, Op, SourceText};
use crate::snapshot::bytes::{Flaw, Read, Reader, Writer, require};
use crate::snapshot::{read_function, write_function};
use std::borrow::Cow;
use std::sync::OnceLock;

/// The standard library's functions.
#[derive(Debug)]
pub(crate) struct Library {
    /// The instructions of all files, padded once.
    pub(super) code: &'static [Op],
    /// How many ids the library takes.
    pub(super) end: Base,
    files: Vec<File>,
    /// For each function its file.
    file_of: Vec<u8>,
}

/// One file of the library.
#[derive(Debug)]
struct File {
    source: SourceText,
    /// The number of its first function.
    first: u32,
    /// Its functions as bytes, one after the other.
    bytes: &'static [u8],
    /// Where the code of each is: start and length.
    places: Vec<(u32, u32)>,
    functions: OnceLock<Vec<Function>>,
}

impl Library {
    pub(crate) const EMPTY: Library =
        Library { code: &[], end: Base::ZERO, files: Vec::new(), file_of: Vec::new() };

    pub(super) fn function(&self, index: u32) -> &Function {
        let Some(file) = self.file(index) else { return &NO_FUNCTION };
        let functions = file.functions.get_or_init(|| file.read().unwrap_or_default());
        functions.get((index - file.first) as usize).unwrap_or(&NO_FUNCTION)
    }

    pub(super) fn source(&self, index: u32) -> &SourceText {
        static NO_SOURCE: OnceLock<SourceText> = OnceLock::new();
        match self.file(index) {
            Some(file) => &file.source,
            None => NO_SOURCE.get_or_init(|| SourceText::from(Cow::Borrowed(""))),
        }
    }

    fn file(&self, index: u32) -> Option<&File> {
        self.files.get(usize::from(*self.file_of.get(index as usize)?))
    }

    /// Appends the tables of a library, and answers its instructions. `code` has run every file, and nothing else.
    pub(crate) fn write(code: &Code, w: &mut Writer) -> Read<Vec<Op>> {
        let end = code.base();
        for n in [end.functions, end.constants, end.sites, end.templates] {
            w.uint(u64::from(n));
        }
        let mut ops = Vec::new();
        w.count(code.programs.len());
        for program in &code.programs {
            let mut cells = Vec::new();
            let mut rest = Writer::new();
            for function in &program.functions {
                let (from, len) = (function.start as usize, function.len as usize);
                let own = program.code.get(from..from + len);
                let own = own.ok_or(Flaw::Invalid("a function of the library is not in its code"))?;
                cells.extend((ops.len() as u32).to_le_bytes());
                cells.extend(function.len.to_le_bytes());
                cells.extend(function.registers.to_le_bytes());
                cells.extend(function.parameters.to_le_bytes());
                cells.extend(u32::from(function.keeps_arguments).to_le_bytes());
                ops.extend_from_slice(own);
                write_function(&mut rest, Base::ZERO, function, &[]);
            }
            w.text(&cells);
            w.text(&rest.finish());
        }
        Ok(ops)
    }

    /// The library that [`Library::write`] wrote, with its instructions.
    pub(crate) fn read(r: &mut Reader<'static>, code: &'static [Op]) -> Read<Code> {
        let end = Base { functions: r.u32()?, constants: r.u32()?, sites: r.u32()?, templates: r.u32()? };
        let mut library = Library { code, end, ..Library::EMPTY };
        let mut entries = Vec::with_capacity(end.functions as usize);
        let files = r.u32()? as usize;
        require(files == builtins::SOURCES.len(), "the library has other files")?;
        for (number, &(_, text)) in builtins::SOURCES.iter().enumerate() {
            let cells = r.text()?.as_chunks::<16>().0;
            let first = entries.len() as u32;
            let mut places = Vec::with_capacity(cells.len());
            for cell in cells {
                let [a, b, c, d, e, f, g, h, i, j, k, l, keeps, ..] = *cell;
                let start = u32::from_le_bytes([a, b, c, d]);
                places.push((start, u32::from_le_bytes([e, f, g, h])));
                let (registers, parameters) = (u16::from_le_bytes([i, j]), u16::from_le_bytes([k, l]));
                let keeps_arguments = keeps != 0;
                entries.push(Entry { whose: Whose::Library, start, registers, parameters, keeps_arguments });
            }
            library.file_of.resize(entries.len(), number as u8);
            let source = SourceText::from(Cow::Borrowed(text));
            library.files.push(File { source, first, bytes: r.text()?, places, functions: OnceLock::new() });
        }
        require(entries.len() as u32 == end.functions, "the library has other functions")?;
        Ok(Code::of(library, entries))
    }
}

impl File {
    fn read(&self) -> Read<Vec<Function>> {
        let r = &mut Reader::new(self.bytes, usize::MAX);
        let mut functions = Vec::with_capacity(self.places.len());
        for &(start, len) in &self.places {
            let function = read_function(r, Base::ZERO, &mut Vec::new())?;
            functions.push(Function { start, len, ..function });
        }
        r.end()?;
        Ok(functions)
    }
}

/// Stands for a function that is not there, which no instruction of the library names.
static NO_FUNCTION: Function = Function {
    name: None,
    kind: FunctionKind::Normal,
    start: 0,
    len: 0,
    registers: 1,
    parameters: 0,
    length: 0,
    captures: Vec::new(),
    handlers: Vec::new(),
    positions: Vec::new(),
    span: (0, 0),
    keeps_arguments: false,
    hidden: true,
};
