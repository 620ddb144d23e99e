//! The programs, as texts that leave their answer in `result`, and the two forms in which each is run.

/// A program of `bench/programs`.
pub(super) struct Program {
    pub(super) name: &'static str,
    body: &'static str,
    pub(super) waits: Waits,
}

/// Whether a program awaits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Never,
    Awaits,
}

/// How a program is put to an engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The body of a function.
    Wrapped,
    /// A script: its variables are at top level.
    TopLevel,
}

impl Form {
    pub(super) const ALL: [Form; 2] = [Form::Wrapped, Form::TopLevel];

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Form::Wrapped => "",
            Form::TopLevel => ", top level",
        }
    }
}

impl Program {
    const fn new(name: &'static str, body: &'static str, waits: Waits) -> Program {
        Program { name, body, waits }
    }

    /// The script; its completion value is the answer, or a promise of it.
    pub(super) fn source(&self, form: Form) -> String {
        let Self { body, waits, .. } = self;
        match (form, waits) {
            (Form::TopLevel, _) => format!("{body}\nresult;\n"),
            (Form::Wrapped, Waits::Never) => format!("(function () {{\n{body}\nreturn result;\n}})();\n"),
            (Form::Wrapped, Waits::Awaits) => {
                format!("(async function () {{\n{body}\nreturn result;\n}})();\n")
            }
        }
    }

    /// The same for node, which measures the work itself and prints both.
    pub(super) fn source_for_node(&self, form: Form) -> String {
        let Self { body, .. } = self;
        let strict = "'use strict';\nconst began = process.cpuUsage();\n";
        let report =
            "const used = process.cpuUsage(began);\nconsole.log(used.user + used.system, String(result));";
        match form {
            Form::TopLevel => format!("{strict}{body}\n{report}\n"),
            Form::Wrapped => format!("{strict}(async function () {{\n{body}\n{report}\n}})();\n"),
        }
    }
}

macro_rules! program {
    ($name:literal, $waits:expr) => {
        Program::new($name, include_str!(concat!("../../programs/", $name, ".js")), $waits)
    };
}

/// All of them, in the order of the table.
pub(super) const PROGRAMS: &[Program] = &[
    program!("fib", Waits::Never),
    program!("loop", Waits::Never),
    program!("props", Waits::Never),
    program!("sort", Waits::Never),
    program!("sort-by", Waits::Never),
    program!("string-build", Waits::Never),
    program!("json-parse", Waits::Never),
    program!("json-stringify", Waits::Never),
    program!("map-set", Waits::Never),
    program!("callbacks", Waits::Never),
    program!("closures", Waits::Never),
    program!("objects", Waits::Never),
    program!("regex", Waits::Never),
    program!("awaits", Waits::Awaits),
    program!("classes", Waits::Never),
    program!("generators", Waits::Never),
];
