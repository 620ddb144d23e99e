//! What counts: strict scripts of ECMAScript 2024. Everything left out is left out by one of the reasons here.

use crate::meta::Meta;

/// Why a test is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeftOut {
    /// Its folder is about something else.
    Folder,
    /// It is a module, sloppy, raw, or needs a blocking agent.
    Flag,
    /// It needs something that is not in the language version or the sandbox.
    Feature,
    /// It uses `$262`, calls `eval` (by any name) or the `Function` constructor or one of its sisters.
    Host,
}

/// Folders below `test/` that are not about strict scripts of the core language.
const FOLDERS: &[&str] = &[
    "annexB/",
    "harness/",
    "intl402/",
    "staging/",
    "built-ins/AbstractModuleSource/",
    "built-ins/Atomics/",
    "built-ins/eval/",
    "built-ins/ShadowRealm/",
    "built-ins/SharedArrayBuffer/",
    "built-ins/Temporal/",
    "language/eval-code/",
    "language/export/",
    "language/expressions/dynamic-import/",
    "language/expressions/import.meta/",
    "language/import/",
    "language/module-code/",
];

const FLAGS: &[&str] = &["module", "noStrict", "raw", "CanBlockIsFalse", "CanBlockIsTrue"];

/// Proposals after ECMAScript 2024, annex B, and what a sandbox does not have.
const FEATURES: &[&str] = &[
    "__getter__",
    "__proto__",
    "__setter__",
    "Atomics",
    "Atomics.pause",
    "Atomics.waitAsync",
    "await-dictionary",
    "caller",
    "canonical-tz",
    "cross-realm",
    "decorators",
    "dynamic-import",
    "Error.isError",
    "error-stack-accessor",
    "explicit-resource-management",
    "export-defer",
    "Float16Array",
    "host-gc-required",
    "immutable-arraybuffer",
    "import-attributes",
    "import-bytes",
    "import-defer",
    "import-text",
    "import.meta",
    "IsHTMLDDA",
    "iterator-chunking",
    "iterator-includes",
    "iterator-sequencing",
    "Iterator.prototype.join",
    "joint-iteration",
    "json-modules",
    "json-parse-with-source",
    "legacy-regexp",
    "Math.sumPrecise",
    "nonextensible-applies-to-private",
    "promise-try",
    "regexp-duplicate-named-groups",
    "regexp-modifiers",
    "RegExp.escape",
    "ShadowRealm",
    "SharedArrayBuffer",
    "source-phase-imports",
    "source-phase-imports-module-source",
    "tail-call-optimization",
    "Temporal",
    "uint8array-base64",
    "upsert",
];

/// What makes code from text, reaches into the host, or loads modules.
const HOST: &[&str] = &[
    "$262",
    "eval(",
    "eval?.(",
    "(0, eval)(",
    "(0,eval)(",
    "Function(",
    "new Function;",
    "Function.call(",
    ".constructor)()",
    "GeneratorFunction(",
    "AsyncFunction(",
    "AsyncGeneratorFunction(",
    "import(",
];

/// Tests that call the `Function` constructor or one of its sisters in a way that no word shows.
const CONSTRUCTORS: &[&str] = &[
    "built-ins/Function/prototype/toString/AsyncGenerator.js",
    "language/comments/hashbang/function-constructor.js",
    "language/expressions/class/subclass-builtins/subclass-Function.js",
    "language/statements/class/subclass-builtins/subclass-Function.js",
    "language/statements/class/subclass/builtin-objects/Function/",
    "language/statements/class/subclass/builtin-objects/GeneratorFunction/",
];

/// Whether a test counts; `path` is relative to `test/`.
pub(crate) fn judge(path: &str, meta: &Meta, source: &str) -> Result<(), LeftOut> {
    if FOLDERS.iter().any(|folder| path.starts_with(folder)) {
        return Err(LeftOut::Folder);
    }
    if FLAGS.iter().any(|flag| meta.has_flag(flag)) {
        return Err(LeftOut::Flag);
    }
    if meta.features.iter().any(|feature| FEATURES.contains(&feature.as_str()) || feature.starts_with("Intl"))
    {
        return Err(LeftOut::Feature);
    }
    let code = source.split_once("---*/").map_or(source, |(_, code)| code);
    let by_path = CONSTRUCTORS.iter().any(|start| path.starts_with(start));
    let needs_host = by_path || HOST.iter().any(|word| uses(code, word)) || code.lines().any(renames_eval);
    if needs_host { Err(LeftOut::Host) } else { Ok(()) }
}

/// `var s = eval;`: what follows calls it by that name.
fn renames_eval(line: &str) -> bool {
    line.trim().strip_prefix("var ").is_some_and(|rest| rest.ends_with("= eval;"))
}

/// Whether the word stands in the code and is not the end of a longer name.
fn uses(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before
            .is_some_and(|before| before.is_alphanumeric() || before == '_' || before == '$' || before == '#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(flags: &[&str], features: &[&str]) -> Meta {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Meta { flags: owned(flags), features: owned(features), ..Meta::default() }
    }

    #[test]
    fn every_reason_is_given_and_the_rest_counts() {
        let plain = meta(&["generated"], &["BigInt"]);
        assert_eq!(judge("language/types/a.js", &plain, "---*/ isFunction(1)"), Ok(()));
        assert_eq!(judge("annexB/a.js", &plain, ""), Err(LeftOut::Folder));
        assert_eq!(judge("language/a.js", &meta(&["module"], &[]), ""), Err(LeftOut::Flag));
        assert_eq!(judge("language/a.js", &meta(&[], &["Temporal"]), ""), Err(LeftOut::Feature));
        assert_eq!(judge("language/a.js", &meta(&[], &["Intl.Locale"]), ""), Err(LeftOut::Feature));
        assert_eq!(judge("language/a.js", &plain, "---*/ new Function('x')"), Err(LeftOut::Host));
        for code in [
            "(0, eval)('1')",
            "eval?.('1')",
            "var s = eval;\ns('1')",
            "new AsyncFunction('')",
            "f = new Function;",
        ] {
            assert_eq!(
                judge("language/a.js", &plain, &format!("---*/ {code}")),
                Err(LeftOut::Host),
                "{code}"
            );
        }
        let subclass = "language/statements/class/subclass/builtin-objects/Function/a.js";
        assert_eq!(judge(subclass, &plain, ""), Err(LeftOut::Host));
        // What only names them counts.
        for code in ["f.call(eval)", "a[1] = eval;", "Function.prototype", "x.isFunction(1)"] {
            assert_eq!(judge("language/a.js", &plain, &format!("---*/ {code}")), Ok(()), "{code}");
        }
        assert_eq!(judge("language/a.js", &plain, "/*--- eval( ---*/ 1"), Ok(()));
    }
}
