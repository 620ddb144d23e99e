//! The front: what is accepted, what is refused and how, and where names lead.

mod hostile;
mod messages;
mod names;
mod refused;
mod tree;

use outrigger_vm::ast::Program;
use outrigger_vm::parse::{
    Diagnostic, DiagnosticKind, FreeNames, NestingLimit, Options, Permission, TopLevel, parse,
};

/// What an embedder of one script would choose.
pub(crate) fn options() -> Options {
    Options {
        top_level_await: Permission::Allowed,
        top_level_return: Permission::Refused,
        intrinsics: Permission::Refused,
        top_level: TopLevel::Private,
        free_names: FreeNames::RefuseAmbient,
        nesting: NestingLimit::SAFE_ON_2_MIB,
        source_bytes: 16 << 20,
        check_regex: |_, _| Ok(()),
    }
}

pub(crate) fn ok(source: &str) -> Program {
    ok_with(source, &options())
}

pub(crate) fn ok_with(source: &str, options: &Options) -> Program {
    match parse(source, options) {
        Ok(program) => program,
        Err(problems) => panic!("{source}\n{}", problems[0].render(source)),
    }
}

pub(crate) fn problems(source: &str) -> Vec<Diagnostic> {
    match parse(source, &options()) {
        Ok(_) => panic!("accepted: {source}"),
        Err(problems) => problems,
    }
}

/// The first problem, which must be an error of the language.
pub(crate) fn parse_error(source: &str) -> String {
    let first = problems(source).remove(0);
    assert_eq!(first.kind, DiagnosticKind::Parse, "{source}");
    first.message
}

/// The first problem, which must be a refusal of ours.
pub(crate) fn refusal(source: &str) -> String {
    let first = problems(source).remove(0);
    assert_eq!(first.kind, DiagnosticKind::Validation, "{source}");
    first.message
}
