//! Source text to a checked and resolved [`Program`].
//!
//! One pass reads tokens (`lexer`, `literal`), builds the tree (`expr`, `chain`, `primary`, `object`, `pattern`,
//! `stmt`, `loops`, `function`, `class`), declares names and finds every early error that does not need to know what
//! a name means (`declare`). A second pass over the tree (`resolve`) says where each name leads.
//!
//! The source is always strict. Parsing is linear: what may be an expression or a pattern is read as an expression
//! and converted once, when `=`, `=>` or `of` shows what it was. Recursion is bounded by [`NestingLimit`]; chains of
//! operators, members, calls and `else if` are loops.
//!
//! ```
//! use outrigger_vm::parse::{FreeNames, NestingLimit, Options, Permission, TopLevel, parse};
//!
//! let options = Options {
//!     top_level_await: Permission::Allowed,
//!     top_level_return: Permission::Refused,
//!     intrinsics: Permission::Refused,
//!     top_level: TopLevel::Private,
//!     free_names: FreeNames::RefuseAmbient,
//!     nesting: NestingLimit::SAFE_ON_2_MIB,
//!     source_bytes: 1 << 20,
//!     check_regex: |_, _| Ok(()),
//! };
//! assert!(parse("const answer = await ask();", &options).is_ok());
//!
//! let source = "let answer = 6 *;";
//! let problems = parse(source, &options).unwrap_err();
//! assert_eq!(
//!     problems[0].render(source),
//!     "1:17: expected an expression, found `;`\n  let answer = 6 *;\n                  ^"
//! );
//! ```

mod chain;
mod class;
mod declare;
mod diagnostic;
mod expr;
mod function;
mod lexer;
mod literal;
mod loops;
mod object;
mod options;
mod parser;
mod pattern;
mod primary;
mod resolve;
mod stmt;
mod token;

pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use options::{FreeNames, NestingLimit, Options, Permission, REFUSED_NAMES, RegexProblem, TopLevel};

use crate::ast::{Body, Flavour, FunctionKind, Program, ScopeKind, Span};
use function::Shape;
use parser::{Parsed, Parser};
use token::T;

/// Reads a script.
///
/// # Errors
///
/// What is wrong with it, in order of position where possible; never empty.
pub fn parse(source: &str, options: &Options) -> Result<Program, Vec<Diagnostic>> {
    let mut parser = Parser::new(source, options);
    if source.len() > options.source_bytes.min(Options::MAX_SOURCE) as usize {
        parser.refuse(Span::new(0, 0), "source is too long");
        return Err(parser.problems);
    }
    match parser.script() {
        Ok(()) if parser.problems.is_empty() => {}
        Ok(()) | Err(_) => return Err(parser.problems),
    }
    parser.finish_declarations();
    let Parser { program, declarations, .. } = parser;
    resolve::resolve(program, &declarations, options, source)
}

impl Parser<'_> {
    fn script(&mut self) -> Parsed<()> {
        let shape = Shape {
            kind: FunctionKind::Script,
            flavour: Flavour::Plain,
            name: None,
            own_name: None,
            start: 0,
        };
        let scope = self.open_scope(ScopeKind::Script, 0);
        let id = self.reserve_function(shape, scope);
        self.advance()?;
        let base = self.stmt_stack.len();
        while !self.at(T::End) {
            let stmt = self.statement_or_declaration()?;
            self.stmt_stack.push(stmt);
        }
        let body = self.take_stmts(base);
        self.close_scope();
        let script = &mut self.program.functions[id.index()];
        script.body = Body::Statements(body);
        script.span = Span::new(0, self.src.len() as u32);
        if self.awaits_at_top {
            script.flavour = Flavour::Async;
        }
        Ok(())
    }
}
