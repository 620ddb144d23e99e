//! The parser's state and the small moves that every rule is made of.

use rustc_hash::FxHashMap;

use super::declare::Declarations;
use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::options::{Options, Permission};
use super::token::{T, Token, word};
use crate::ast::{
    ArgsId, Atom, Check, Expr, ExprId, List, Listed, Pattern, PatternId, Program, Property, RefId, Reference,
    Span, Stmt, StmtId, Target,
};

/// The parse cannot go on; why is in the parser's problems.
#[derive(Debug)]
pub(super) struct Stop;

pub(super) type Parsed<T> = Result<T, Stop>;

/// After so many problems the rest is rarely worth reading.
const MAX_PROBLEMS: usize = 20;

pub(super) struct Parser<'s> {
    pub(super) text: &'s str,
    pub(super) src: &'s [u8],
    pub(super) options: &'s Options,
    /// Where the lexer is: after the current token.
    pub(super) pos: usize,
    pub(super) tok: Token,
    pub(super) prev_end: u32,
    pub(super) program: Program,
    pub(super) problems: Vec<Diagnostic>,
    pub(super) depth: u16,
    pub(super) context: Context,
    pub(super) labels: Vec<Label>,
    pub(super) declarations: Declarations,
    /// What is wrong with the expression being read unless it turns out to be a pattern, as `{a = 1}`.
    pub(super) open_cover: Option<(Span, &'static str)>,
    /// Where an assignment expression starts: only there can an arrow function start.
    pub(super) arrow_at: u32,
    /// The last `yield` or `await` expression of this function: neither may stand in an arrow's parameters.
    pub(super) suspension: Option<Span>,
    /// The last use of `await` as a name: it may not stand in an async arrow's parameters.
    pub(super) await_name: Option<Span>,
    /// A malformed escape in the template being read.
    pub(super) bad_template_escape: Option<(u32, &'static str)>,
    pub(super) units: Vec<u16>,
    pub(super) expr_stack: Vec<ExprId>,
    pub(super) stmt_stack: Vec<StmtId>,
    /// Property lists of the literals being read, one above the other.
    pub(super) spare_properties: Vec<Property>,
    /// Literals in which a comma follows a spread: fine as values, not as patterns.
    pub(super) comma_after_spread: FxHashMap<ExprId, Span>,
    pub(super) awaits_at_top: bool,
}

/// What the grammar's parameters and the placement rules depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// `yield` is an operator.
    pub(super) in_generator: bool,
    pub(super) await_means: AwaitMeans,
    /// In the parameters of a generator or async function, where `yield` and `await` are refused.
    pub(super) in_params: bool,
    pub(super) return_allowed: bool,
    pub(super) super_member: bool,
    pub(super) super_call: bool,
    pub(super) new_target: bool,
    /// In a field initialiser or static block, where `arguments` is refused.
    pub(super) no_arguments: bool,
    pub(super) in_loop: bool,
    pub(super) in_switch: bool,
    /// `in` is an operator (not so in the head of a `for`).
    pub(super) in_operator: bool,
    /// Labels below this index belong to an outer function.
    pub(super) label_base: usize,
    /// Directly in the script, outside any function (arrows included).
    pub(super) at_top: bool,
}

/// What the word `await` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwaitMeans {
    Name,
    Operator,
    /// Neither a name nor an operator.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub(super) name: Atom,
    pub(super) start: u32,
    /// Where the statement behind the colon starts.
    pub(super) body_start: u32,
    pub(super) is_loop: bool,
}

impl<'s> Parser<'s> {
    pub(super) fn new(text: &'s str, options: &'s Options) -> Self {
        let start = Token {
            kind: T::End,
            start: 0,
            end: 0,
            newline_before: false,
            escaped: false,
            atom: word::EMPTY,
            number: 0.0,
        };
        let await_means = match options.top_level_await {
            Permission::Allowed => AwaitMeans::Operator,
            Permission::Refused => AwaitMeans::Name,
        };
        let program = Program { texts: super::token::texts_with_words(), ..Program::default() };
        Self {
            text,
            src: text.as_bytes(),
            options,
            pos: 0,
            tok: start,
            prev_end: 0,
            program,
            problems: Vec::new(),
            depth: 0,
            context: Context {
                in_generator: false,
                await_means,
                in_params: false,
                return_allowed: options.top_level_return == Permission::Allowed,
                super_member: false,
                super_call: false,
                new_target: false,
                no_arguments: false,
                in_loop: false,
                in_switch: false,
                in_operator: true,
                label_base: 0,
                at_top: true,
            },
            labels: Vec::new(),
            declarations: Declarations::default(),
            open_cover: None,
            arrow_at: 0,
            suspension: None,
            await_name: None,
            bad_template_escape: None,
            units: Vec::new(),
            expr_stack: Vec::new(),
            stmt_stack: Vec::new(),
            spare_properties: Vec::new(),
            comma_after_spread: FxHashMap::default(),
            awaits_at_top: false,
        }
    }

    // Problems.

    /// Notes a problem and goes on.
    pub(super) fn problem(&mut self, span: Span, message: &str) {
        self.note(DiagnosticKind::Parse, span, message);
    }

    /// Notes a construct that we do not run, and goes on.
    pub(super) fn refuse(&mut self, span: Span, message: &str) {
        self.note(DiagnosticKind::Validation, span, message);
    }

    fn note(&mut self, kind: DiagnosticKind, span: Span, message: &str) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Diagnostic::new(kind, message.to_owned(), span, self.text));
        }
    }

    /// Notes a problem that ends the parse.
    pub(super) fn fail<V>(&mut self, span: Span, message: &str) -> Parsed<V> {
        self.problem(span, message);
        Err(Stop)
    }

    pub(super) fn fail_at<V>(&mut self, start: usize, end: usize, message: &str) -> Parsed<V> {
        self.fail(Span::new(start as u32, end.max(start) as u32), message)
    }

    /// Ends the parse because of a construct that we do not run.
    pub(super) fn fail_refused<V>(&mut self, span: Span, message: &str) -> Parsed<V> {
        self.refuse(span, message);
        Err(Stop)
    }

    /// Ends the parse: something else should stand here.
    #[cold]
    pub(super) fn unexpected<V>(&mut self, expected: &str) -> Parsed<V> {
        let found = self.describe(self.tok);
        self.fail(self.span(), &format!("expected {expected}, found {found}"))
    }

    pub(super) fn describe(&self, token: Token) -> String {
        if token.kind == T::End {
            return "the end of the source".to_owned();
        }
        let mut text: String = self.text[token.start as usize..token.end as usize].chars().take(40).collect();
        if text.len() < (token.end - token.start) as usize {
            text.push('…');
        }
        format!("`{text}`")
    }

    // Moves.

    pub(super) fn span(&self) -> Span {
        Span::new(self.tok.start, self.tok.end)
    }

    /// From `start` to the end of the last token read.
    pub(super) fn span_from(&self, start: u32) -> Span {
        Span::new(start, self.prev_end.max(start))
    }

    pub(super) fn at(&self, kind: T) -> bool {
        self.tok.kind == kind
    }

    /// Whether the current token is this word, unescaped.
    pub(super) fn at_word(&self, atom: Atom) -> bool {
        self.tok.kind == T::Ident && self.tok.atom == atom && !self.tok.escaped
    }

    /// Reads the token if it is of this kind.
    pub(super) fn eat(&mut self, kind: T) -> Parsed<bool> {
        if self.tok.kind == kind {
            self.advance()?;
            return Ok(true);
        }
        Ok(false)
    }

    pub(super) fn expect(&mut self, kind: T) -> Parsed<()> {
        if self.tok.kind == kind {
            return self.advance();
        }
        let expected =
            kind.spelling().map_or_else(|| "something else".to_owned(), |text| format!("`{text}`"));
        self.unexpected(&expected)
    }

    /// The end of a statement: `;`, or where one may be left out.
    pub(super) fn semicolon(&mut self) -> Parsed<()> {
        match self.tok.kind {
            T::Semicolon => self.advance(),
            T::BraceClose | T::End => Ok(()),
            _ if self.tok.newline_before => Ok(()),
            _ => self.unexpected("`;` or a new line"),
        }
    }

    /// Runs `rule` one level deeper.
    pub(super) fn nested<V>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<V>) -> Parsed<V> {
        if self.depth >= self.options.nesting.0 {
            return self.fail_refused(self.span(), "source is nested too deeply");
        }
        self.depth += 1;
        let value = rule(self)?;
        self.depth -= 1;
        Ok(value)
    }

    // Nodes.

    pub(super) fn add_expr(&mut self, expr: Expr, start: u32) -> ExprId {
        let id = ExprId::from_index(self.program.exprs.len());
        self.program.exprs.push(expr);
        self.program.expr_spans.push(Span::new(start, self.prev_end.max(start)));
        id
    }

    pub(super) fn add_stmt(&mut self, stmt: Stmt, start: u32) -> StmtId {
        let id = StmtId::from_index(self.program.stmts.len());
        self.program.stmts.push(stmt);
        self.program.stmt_spans.push(Span::new(start, self.prev_end.max(start)));
        id
    }

    pub(super) fn add_pattern(&mut self, pattern: Pattern) -> PatternId {
        let id = PatternId::from_index(self.program.patterns.len());
        self.program.patterns.push(pattern);
        id
    }

    pub(super) fn add_ref(&mut self, name: Atom, span: Span) -> RefId {
        let id = RefId::from_index(self.program.references.len());
        self.program.references.push(Reference { name, target: Target::Global, check: Check::Never, span });
        id
    }

    pub(super) fn add_list<V: Listed + Copy>(&mut self, items: &[V]) -> List<V> {
        let table = V::table_mut(&mut self.program);
        let start = table.len() as u32;
        table.extend_from_slice(items);
        List::new(start, items.len() as u32)
    }

    /// The expressions pushed since `base`, as a list.
    pub(super) fn take_exprs(&mut self, base: usize) -> List<ExprId> {
        let table = &mut self.program.lists.exprs;
        let start = table.len() as u32;
        table.extend_from_slice(&self.expr_stack[base..]);
        let len = (self.expr_stack.len() - base) as u32;
        self.expr_stack.truncate(base);
        List::new(start, len)
    }

    /// The statements pushed since `base`, as a list.
    pub(super) fn take_stmts(&mut self, base: usize) -> List<StmtId> {
        let table = &mut self.program.lists.stmts;
        let start = table.len() as u32;
        table.extend_from_slice(&self.stmt_stack[base..]);
        let len = (self.stmt_stack.len() - base) as u32;
        self.stmt_stack.truncate(base);
        List::new(start, len)
    }

    pub(super) fn add_args(&mut self, args: List<ExprId>) -> ArgsId {
        let id = ArgsId(self.program.args.len() as u32);
        self.program.args.push(args);
        id
    }
}
