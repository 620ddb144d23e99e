//! The stages, and what it means for a test to pass at the first: it is parsed, or refused.

use anyhow::{Result, bail};
use clap::ValueEnum;
use outrigger_vm::ast::Text;
use outrigger_vm::parse::{self, FreeNames, NestingLimit, Options, Permission, RegexProblem, TopLevel};
use outrigger_vm::regex;

use crate::meta::{Meta, Phase};

/// How far a test is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// Only parsed: what must be refused is refused, everything else is accepted.
    Parse,
    /// Executed after its harness.
    Run,
}

impl Stage {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Run => "run",
        }
    }

    /// Where its known failures are, seen from the project's folder.
    pub(crate) fn ledger(self) -> &'static str {
        match self {
            Self::Parse => "test262/ledger-parse.txt",
            Self::Run => "test262/ledger.txt",
        }
    }
}

/// A guest may not use `await` as a name at the top of a script; a test may.
pub(crate) const OPTIONS: Options = Options {
    top_level_await: Permission::Refused,
    top_level_return: Permission::Refused,
    intrinsics: Permission::Refused,
    top_level: TopLevel::Shared,
    free_names: FreeNames::Allowed,
    nesting: NestingLimit(1000),
    source_bytes: Options::MAX_SOURCE,
    check_regex,
};

pub(crate) fn parse(source: &str, meta: &Meta) -> Result<()> {
    let must_fail = meta.negative.as_ref().is_some_and(|negative| negative.phase == Phase::Parse);
    match (parse::parse(source, &OPTIONS), must_fail) {
        (Ok(_), false) | (Err(_), true) => Ok(()),
        (Ok(_), true) => bail!("accepted, but it must be refused"),
        (Err(problems), false) => match problems.first() {
            Some(problem) => bail!("refused: {}", problem.message),
            None => bail!("refused without a reason"),
        },
    }
}

fn check_regex(pattern: Text<'_>, flags: Text<'_>) -> Result<(), RegexProblem> {
    regex::check(pattern.into(), flags.into()).map_err(|error| RegexProblem { message: error.to_string() })
}
