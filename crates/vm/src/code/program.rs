//! A compiled program: functions over one instruction arena, with their constants, handlers and positions.

use super::op::Op;

/// Instructions in a page of a function: the interpreter indexes a window of this size with a `u16`, which needs no
/// bounds check. Where instructions are run they are padded by this much, so that every page has a full window. All but the
/// longest functions have one page.
pub const WINDOW: usize = 65_536;

/// How many ids are taken before this program: its own begin here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// Functions of earlier programs.
    pub functions: u32,
    /// Constants of earlier programs.
    pub constants: u32,
    /// Property sites of earlier programs.
    pub sites: u32,
    /// Template objects of earlier programs.
    pub templates: u32,
}

impl Base {
    /// The base of the first program.
    pub const ZERO: Base = Base { functions: 0, constants: 0, sites: 0, templates: 0 };
}

/// A compiled script.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where the ids of this program begin.
    pub base: Base,
    /// Instructions of all functions.
    pub code: Vec<Op>,
    /// The functions; the first is the script itself.
    pub functions: Vec<Function>,
    /// Values that instructions load.
    pub constants: Vec<Constant>,
    /// The key (an index into `constants`, absolute) of each property site.
    pub sites: Vec<u32>,
    /// Tagged template objects.
    pub templates: Vec<Template>,
    /// The text it was compiled from, for positions and `toString`.
    pub source: super::SourceText,
}

impl Program {
    /// What it takes in memory, what an allocator puts around it included, for those who keep programs within a budget.
    #[must_use]
    pub fn memory(&self) -> usize {
        let constant = |constant: &Constant| match constant {
            Constant::Number(_) => 0,
            Constant::String(units) => allocated::<u16>(units.capacity()),
            Constant::BigInt(digits) => allocated::<u8>(digits.capacity()),
        };
        let function = |function: &Function| {
            allocated::<Capture>(function.captures.capacity())
                + allocated::<Handler>(function.handlers.capacity())
                + allocated::<(u32, u32)>(function.positions.capacity())
        };
        let template = |template: &Template| {
            allocated::<Option<u32>>(template.cooked.capacity()) + allocated::<u32>(template.raw.capacity())
        };
        allocated::<Program>(1)
            + allocated::<Op>(self.code.capacity())
            + allocated::<Function>(self.functions.capacity())
            + self.functions.iter().map(function).sum::<usize>()
            + allocated::<Constant>(self.constants.capacity())
            + self.constants.iter().map(constant).sum::<usize>()
            + allocated::<u32>(self.sites.capacity())
            + allocated::<Template>(self.templates.capacity())
            + self.templates.iter().map(template).sum::<usize>()
            + allocated::<u8>(self.source.len())
    }
}

/// So many of these in one allocation: rounded up, with a word or two for the allocator.
fn allocated<T>(count: usize) -> usize {
    match count * size_of::<T>() {
        0 => 0,
        bytes => bytes.next_multiple_of(16) + 16,
    }
}

/// A constant as the compiler knows it; the machine makes heap values of them when the program is loaded.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// A number.
    Number(f64),
    /// A string, as UTF-16 code units.
    String(Vec<u16>),
    /// A BigInt, as decimal digits.
    BigInt(String),
}

/// The two arrays of a tagged template: cooked strings (undefined for a bad escape) and raw ones, as constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Cooked parts.
    pub cooked: Vec<Option<u32>>,
    /// Raw parts.
    pub raw: Vec<u32>,
}

/// How a function behaves when called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// The script itself.
    Script,
    /// `function`, callable with and without `new`.
    Normal,
    /// An arrow: no `this`, no `new`.
    Arrow,
    /// A method or accessor: no `new`.
    Method,
    /// A class constructor without `extends`.
    BaseConstructor,
    /// A class constructor with `extends`.
    DerivedConstructor,
    /// `function*`.
    Generator,
    /// `async function`.
    Async,
    /// An async arrow.
    AsyncArrow,
    /// `async function*`.
    AsyncGenerator,
    /// The synthetic function that initialises a class's fields.
    Fields,
}

impl FunctionKind {
    /// Whether `new` may be used on it.
    pub fn is_constructor(self) -> bool {
        matches!(self, Self::Normal | Self::BaseConstructor | Self::DerivedConstructor)
    }

    /// Whether it is a class constructor, which cannot be called without `new`.
    pub fn is_class(self) -> bool {
        matches!(self, Self::BaseConstructor | Self::DerivedConstructor)
    }

    /// Whether its body may `await`.
    pub fn is_async(self) -> bool {
        matches!(self, Self::Async | Self::AsyncArrow | Self::AsyncGenerator)
    }

    /// Whether a call of it makes a generator object.
    pub fn is_generator(self) -> bool {
        matches!(self, Self::Generator | Self::AsyncGenerator)
    }
}

/// Where a closure takes a captured variable's cell from, in the function that makes the closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// A register that holds the cell.
    Register(u8),
    /// A register that holds the record, and the place of the cell in it.
    Record(u8, u16),
    /// The maker's own captured variable.
    Captured(u16),
    /// A name that turned out to live on the global object: nothing is captured.
    Absent,
}

/// A stretch of instructions whose exceptions are caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// First covered instruction.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Where the run goes on.
    pub target: u32,
    /// The register that receives the exception.
    pub register: u8,
}

/// One function: a stretch of the arena and what the interpreter must know to enter it.
#[derive(Clone, Debug)]
pub struct Function {
    /// The constant with its name (absolute), if it has one.
    pub name: Option<u32>,
    /// How it behaves when called.
    pub kind: FunctionKind,
    /// Its first instruction in the program's arena.
    pub start: u32,
    /// Number of instructions.
    pub len: u32,
    /// Registers it uses: `this`, parameters, locals, temporaries.
    pub registers: u16,
    /// Formal parameters that arrive in registers 1..=n.
    pub parameters: u16,
    /// The `length` property: parameters before the first default or rest.
    pub length: u16,
    /// The cells its closures hold.
    pub captures: Vec<Capture>,
    /// Innermost first.
    pub handlers: Vec<Handler>,
    /// (instruction, source byte offset), ascending; an instruction without an entry has the one before it.
    pub positions: Vec<(u32, u32)>,
    /// The function's text in the source, for `toString` and tracebacks.
    pub span: (u32, u32),
    /// Whether it looks at arguments beyond its parameters: then they must survive its locals.
    pub keeps_arguments: bool,
    /// Whether tracebacks leave it out: a prelude function.
    pub hidden: bool,
}

impl Function {
    /// The source byte offset of an instruction.
    pub fn position(&self, pc: u32) -> u32 {
        let after = self.positions.partition_point(|&(at, _)| at <= pc);
        match after.checked_sub(1).and_then(|i| self.positions.get(i)) {
            Some(&(_, offset)) => offset,
            None => self.span.0,
        }
    }

    /// The innermost handler that covers an instruction.
    pub fn handler(&self, pc: u32) -> Option<Handler> {
        self.handlers.iter().copied().find(|h| h.start <= pc && pc < h.end)
    }
}
