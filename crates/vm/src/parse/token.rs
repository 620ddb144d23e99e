//! Tokens, and the words that mean something.

use crate::ast::{Atom, BinaryOp, LogicalOp, Texts};

/// A token. Text is interned, so it is a plain value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: T,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Whether a line ends between the previous token and this one.
    pub(super) newline_before: bool,
    /// Whether a word or string was written with an escape (then a word is no keyword, a directive none).
    pub(super) escaped: bool,
    /// The text of names, words, private names (with `#`), strings, BigInts and regex patterns.
    pub(super) atom: Atom,
    /// The value of a number.
    pub(super) number: f64,
}

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub(super) enum T {
    End, Ident, PrivateName, Number, BigInt, String, Template,
    // Reserved words, in the order of `RESERVED`.
    Break, Case, Catch, Class, Const, Continue, Debugger, Default, Delete, Do, Else, Enum, Export, Extends, False,
    Finally, For, Function, If, Import, In, InstanceOf, New, Null, Return, Super, Switch, This, Throw, True, Try,
    TypeOf, Var, Void, While, With,
    // Punctuators.
    BraceOpen, BraceClose, ParenOpen, ParenClose, BracketOpen, BracketClose,
    Dot, Ellipsis, Semicolon, Comma, Question, QuestionDot, Colon, Arrow, Tilde, Not,
    Less, Greater, LessEqual, GreaterEqual, Equal, NotEqual, StrictEqual, StrictNotEqual,
    Plus, Minus, Star, Slash, Percent, StarStar, PlusPlus, MinusMinus,
    ShiftLeft, ShiftRight, ShiftRightUnsigned, And, Or, Caret, AndAnd, OrOr, Nullish,
    Assign, PlusAssign, MinusAssign, StarAssign, SlashAssign, PercentAssign, StarStarAssign,
    ShiftLeftAssign, ShiftRightAssign, ShiftRightUnsignedAssign, AndAssign, OrAssign, CaretAssign,
    AndAndAssign, OrOrAssign, NullishAssign,
}

/// Reserved words; the atom of each is its index here.
#[rustfmt::skip]
const RESERVED: [(&str, T); 36] = [
    ("break", T::Break), ("case", T::Case), ("catch", T::Catch), ("class", T::Class), ("const", T::Const),
    ("continue", T::Continue), ("debugger", T::Debugger), ("default", T::Default), ("delete", T::Delete),
    ("do", T::Do), ("else", T::Else), ("enum", T::Enum), ("export", T::Export), ("extends", T::Extends),
    ("false", T::False), ("finally", T::Finally), ("for", T::For), ("function", T::Function), ("if", T::If),
    ("import", T::Import), ("in", T::In), ("instanceof", T::InstanceOf), ("new", T::New), ("null", T::Null),
    ("return", T::Return), ("super", T::Super), ("switch", T::Switch), ("this", T::This), ("throw", T::Throw),
    ("true", T::True), ("try", T::Try), ("typeof", T::TypeOf), ("var", T::Var), ("void", T::Void),
    ("while", T::While), ("with", T::With),
];

macro_rules! words {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// Atoms of words that mean something in places, numbered after the reserved ones.
        pub(super) mod word {
            use crate::ast::Atom;
            #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "one name for index and constant")]
            enum Index { $($name),* }
            $(pub(in crate::parse) const $name: Atom = Atom::from_index(super::RESERVED.len() + Index::$name as usize);)*
        }
        const WORDS: &[&str] = &[$($text),*];
    };
}

words! {
    // Reserved in strict code.
    IMPLEMENTS = "implements", INTERFACE = "interface", LET = "let", PACKAGE = "package", PRIVATE = "private",
    PROTECTED = "protected", PUBLIC = "public", STATIC = "static", YIELD = "yield",
    AWAIT = "await", ASYNC = "async", OF = "of", GET = "get", SET = "set", EVAL = "eval", ARGUMENTS = "arguments",
    CONSTRUCTOR = "constructor", PROTOTYPE = "prototype", PROTO = "__proto__", TARGET = "target",
    PRIVATE_CONSTRUCTOR = "#constructor", EMPTY = "", NEW_TARGET = "new.target", USE_STRICT = "use strict",
}

/// The interner with every word above in its place.
pub(super) fn texts_with_words() -> Texts {
    let mut texts = Texts::default();
    for (word, _) in RESERVED {
        texts.latin1(word.as_bytes());
    }
    for word in WORDS {
        texts.latin1(word.as_bytes());
    }
    texts
}

/// The kind of a word.
pub(super) fn word_kind(atom: Atom) -> T {
    RESERVED.get(atom.index()).map_or(T::Ident, |&(_, kind)| kind)
}

/// Whether a word is a name elsewhere but not in strict code.
pub(super) fn is_strict_reserved(atom: Atom) -> bool {
    matches!(
        atom,
        word::IMPLEMENTS
            | word::INTERFACE
            | word::LET
            | word::PACKAGE
            | word::PRIVATE
            | word::PROTECTED
            | word::PUBLIC
            | word::STATIC
            | word::YIELD
    )
}

impl T {
    /// Whether it is one of the reserved words.
    pub(super) fn is_reserved(self) -> bool {
        (T::Break as u8..=T::With as u8).contains(&(self as u8))
    }

    /// Binding power (higher is tighter) and operator of a binary operator.
    pub(super) fn binary(self) -> Option<(u8, Infix)> {
        use {BinaryOp as B, Infix::Binary, Infix::Logical, LogicalOp as L};
        Some(match self {
            T::Nullish => (1, Logical(L::Nullish)),
            T::OrOr => (1, Logical(L::Or)),
            T::AndAnd => (2, Logical(L::And)),
            T::Or => (3, Binary(B::BitOr)),
            T::Caret => (4, Binary(B::BitXor)),
            T::And => (5, Binary(B::BitAnd)),
            T::Equal => (6, Binary(B::Equal)),
            T::NotEqual => (6, Binary(B::NotEqual)),
            T::StrictEqual => (6, Binary(B::StrictEqual)),
            T::StrictNotEqual => (6, Binary(B::StrictNotEqual)),
            T::Less => (7, Binary(B::Less)),
            T::Greater => (7, Binary(B::Greater)),
            T::LessEqual => (7, Binary(B::LessEqual)),
            T::GreaterEqual => (7, Binary(B::GreaterEqual)),
            T::In => (7, Binary(B::In)),
            T::InstanceOf => (7, Binary(B::InstanceOf)),
            T::ShiftLeft => (8, Binary(B::ShiftLeft)),
            T::ShiftRight => (8, Binary(B::ShiftRight)),
            T::ShiftRightUnsigned => (8, Binary(B::ShiftRightUnsigned)),
            T::Plus => (9, Binary(B::Add)),
            T::Minus => (9, Binary(B::Sub)),
            T::Star => (10, Binary(B::Mul)),
            T::Slash => (10, Binary(B::Div)),
            T::Percent => (10, Binary(B::Rem)),
            T::StarStar => (11, Binary(B::Exp)),
            _ => return None,
        })
    }

    /// What a compound assignment does.
    pub(super) fn compound_assignment(self) -> Option<Infix> {
        use {BinaryOp as B, Infix::Binary, Infix::Logical, LogicalOp as L};
        Some(match self {
            T::PlusAssign => Binary(B::Add),
            T::MinusAssign => Binary(B::Sub),
            T::StarAssign => Binary(B::Mul),
            T::SlashAssign => Binary(B::Div),
            T::PercentAssign => Binary(B::Rem),
            T::StarStarAssign => Binary(B::Exp),
            T::ShiftLeftAssign => Binary(B::ShiftLeft),
            T::ShiftRightAssign => Binary(B::ShiftRight),
            T::ShiftRightUnsignedAssign => Binary(B::ShiftRightUnsigned),
            T::AndAssign => Binary(B::BitAnd),
            T::OrAssign => Binary(B::BitOr),
            T::CaretAssign => Binary(B::BitXor),
            T::AndAndAssign => Logical(L::And),
            T::OrOrAssign => Logical(L::Or),
            T::NullishAssign => Logical(L::Nullish),
            _ => return None,
        })
    }

    /// How it is written, for messages; nothing for kinds with varying text.
    pub(super) fn spelling(self) -> Option<&'static str> {
        if let Some((word, _)) = RESERVED.iter().find(|(_, kind)| *kind == self) {
            return Some(word);
        }
        PUNCTUATION.iter().find(|(kind, _)| *kind == self).map(|&(_, text)| text)
    }
}

/// Punctuators that the parser may say it expected.
const PUNCTUATION: &[(T, &str)] = &[
    (T::BraceOpen, "{"),
    (T::BraceClose, "}"),
    (T::ParenOpen, "("),
    (T::ParenClose, ")"),
    (T::BracketOpen, "["),
    (T::BracketClose, "]"),
    (T::Semicolon, ";"),
    (T::Comma, ","),
    (T::Colon, ":"),
    (T::Arrow, "=>"),
    (T::Dot, "."),
    (T::Assign, "="),
];

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Infix {
    Binary(BinaryOp),
    Logical(LogicalOp),
}
