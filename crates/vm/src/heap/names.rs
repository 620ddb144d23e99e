//! Names that the engine itself uses, with fixed ids: well-known strings and symbols. Never collected.

/// The symbol ids of the specification's own symbols.
pub mod symbols {
    use crate::heap::SymId;

    macro_rules! well_known {
        ($($name:ident = $index:literal $text:literal)*) => {
            $(#[doc = concat!("`", $text, "`.")]
            pub const $name: SymId = SymId::from_raw($index);)*
            pub(crate) const TEXTS: &[&str] = &[$($text),*];
        };
    }
    well_known! {
        ASYNC_ITERATOR = 0 "Symbol.asyncIterator"
        HAS_INSTANCE = 1 "Symbol.hasInstance"
        IS_CONCAT_SPREADABLE = 2 "Symbol.isConcatSpreadable"
        ITERATOR = 3 "Symbol.iterator"
        MATCH = 4 "Symbol.match"
        MATCH_ALL = 5 "Symbol.matchAll"
        REPLACE = 6 "Symbol.replace"
        SEARCH = 7 "Symbol.search"
        SPECIES = 8 "Symbol.species"
        SPLIT = 9 "Symbol.split"
        TO_PRIMITIVE = 10 "Symbol.toPrimitive"
        TO_STRING_TAG = 11 "Symbol.toStringTag"
        UNSCOPABLES = 12 "Symbol.unscopables"
    }
}

/// The string ids of names that the engine itself uses.
pub mod atoms {
    use crate::heap::StrId;

    /// The empty string. The 256 one-character Latin-1 strings follow it.
    pub const EMPTY: StrId = StrId::from_raw(0);

    macro_rules! well_known {
        ($($name:ident $text:literal)*) => {
            #[derive(Clone, Copy)]
            #[expect(
                non_camel_case_types,
                clippy::upper_case_acronyms,
                reason = "the variants only number the constants below"
            )]
            enum Number { $($name),* }
            $(#[doc = concat!("`", $text, "`.")]
            pub const $name: StrId = StrId::from_raw(257 + Number::$name as u32);)*
            pub(crate) const TEXTS: &[&str] = &[$($text),*];
        };
    }
    well_known! {
        LENGTH "length"
        PROTOTYPE "prototype"
        CONSTRUCTOR "constructor"
        NAME "name"
        MESSAGE "message"
        CAUSE "cause"
        ERRORS "errors"
        STACK "stack"
        TO_STRING "toString"
        VALUE_OF "valueOf"
        TO_JSON "toJSON"
        NEXT "next"
        RETURN "return"
        THROW "throw"
        DONE "done"
        VALUE "value"
        GET "get"
        SET "set"
        WRITABLE "writable"
        ENUMERABLE "enumerable"
        CONFIGURABLE "configurable"
        THEN "then"
        RAW "raw"
        INDEX "index"
        INPUT "input"
        GROUPS "groups"
        INDICES "indices"
        LAST_INDEX "lastIndex"
        CALLEE "callee"
        ARGUMENTS "arguments"
        GLOBAL_THIS "globalThis"
        PROTO "__proto__"
        UNDEFINED "undefined"
        NULL "null"
        TRUE "true"
        FALSE "false"
        NAN "NaN"
        INFINITY "Infinity"
        OBJECT "object"
        FUNCTION "function"
        NUMBER "number"
        STRING "string"
        BOOLEAN "boolean"
        SYMBOL "symbol"
        BIGINT "bigint"
        DEFAULT "default"
        ANONYMOUS "anonymous"
        HAS "has"
        ADD "add"
        PUSH "push"
        EXEC "exec"
    }
}
