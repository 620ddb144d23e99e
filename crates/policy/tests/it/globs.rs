//! What patterns match, in each reading, and that none of them can be made slow.

use outrigger_policy::glob::{MAX_BRACE_DEPTH, MAX_PATTERN_BYTES};
use outrigger_policy::{Glob, GlobError, Reading};

fn check(reading: Reading, pattern: &str, yes: &[&str], no: &[&str]) {
    let glob = Glob::new(pattern, reading).unwrap();
    for text in yes {
        assert!(glob.matches(text), "`{pattern}` as {reading:?} does not match `{text}`");
    }
    for text in no {
        assert!(!glob.matches(text), "`{pattern}` as {reading:?} matches `{text}`");
    }
}

#[test]
fn a_name_pattern_covers_the_whole_name() {
    let name = Reading::Name;
    check(name, "Bash", &["Bash"], &["bash", "Bash ", "KillBash", ""]);
    check(name, "mcp__*__*", &["mcp__files__read", "mcp____"], &["mcp__files", "xmcp__a__b"]);
    check(name, "*", &["", "a", "a/b"], &[]);
    check(name, "a?c", &["abc", "a/c", "aéc"], &["ac", "abbc"]);
    check(name, "*.example.org", &["a.example.org", "a.b.example.org"], &["example.org", "xexample.org"]);
}

#[test]
fn a_star_in_a_path_stays_in_its_folder() {
    let path = Reading::Path;
    check(path, "*.log", &["a.log", ".log"], &["a/b.log", "a.log/b"]);
    check(path, "src/*/mod.rs", &["src/a/mod.rs"], &["src/mod.rs", "src/a/b/mod.rs"]);
    check(path, "a?b", &["axb"], &["a/b"]);
    check(path, "a[!x]b", &["ayb"], &["a/b", "axb"]);
    check(path, "a[+-9]b", &["a.b", "a0b"], &["a/b"]);
}

#[test]
fn two_stars_cross_folders() {
    for path in [Reading::Path, Reading::LoosePath] {
        check(path, "**/.env", &[".env", "a/.env", "a/b/.env"], &["x.env", "a/x.env", ".env/a"]);
        check(
            path,
            "**/.git/**",
            &[".git", ".git/config", "a/.git/hooks/x", "a/.git"],
            &[".gitx", "a/x.git/b"],
        );
        check(path, "src/**", &["src", "src/a", "src/a/b"], &["srcx", "asrc/a", "a/src/b"]);
        check(path, "a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "xa/b"]);
        check(path, "**", &["", "a", "a/b"], &[]);
        check(path, "a**b", &["ab", "axb", "a/x/b"], &["a/x/c"]);
        check(path, "**/**/x", &["x", "a/x", "a/b/x"], &["ax"]);
    }
}

#[test]
fn a_loose_path_reads_a_star_as_others_do() {
    check(Reading::LoosePath, "*.log", &["a.log", "a/b.log"], &["a.log/b"]);
    check(Reading::LoosePath, "a?b", &["axb", "a/b"], &[]);
    check(Reading::LoosePath, "a[!x]b", &["a/b", "ayb"], &["axb"]);
}

#[test]
fn classes_have_ranges_negation_and_literal_brackets() {
    let name = Reading::Name;
    check(name, "[abc]", &["a", "b", "c"], &["d", "ab", ""]);
    check(name, "[a-cx-z]", &["b", "y"], &["d", "-"]);
    check(name, "[!a-c]", &["d", "]"], &["a"]);
    check(name, "[^a-c]", &["d", "^"], &["a"]);
    check(name, "[]a]", &["]", "a"], &["[", "b"]);
    check(name, "[!]a]", &["b"], &["]", "a"]);
    check(name, "[a-]", &["a", "-"], &["b"]);
    check(name, r"[\]\-]", &["]", "-"], &["\\"]);
    check(name, "[а-я]", &["ж"], &["z"]);
}

#[test]
fn braces_give_alternatives_that_may_nest_and_be_empty() {
    let path = Reading::Path;
    check(path, "{a,b}", &["a", "b"], &["", "ab", "{a,b}"]);
    check(path, "x{,y}z", &["xz", "xyz"], &["xyyz"]);
    check(path, "{a,b{c,d}}e", &["ae", "bce", "bde"], &["be", "bcde"]);
    check(path, "*.{rs,toml}", &["a.rs", "b.toml"], &["a/b.rs", "a.rsx"]);
    check(path, "{**/a,b}", &["a", "x/y/a", "b"], &["x/b"]);
    check(path, "{src,docs}/**", &["src", "src/a", "docs/b/c"], &["x/a"]);
    check(path, "{a/,b/}**/c", &["a/c", "b/c", "a/x/c"], &["c", "ac"]);
    check(path, "{a}", &["a"], &["{a}"]);
    check(path, "a,b}", &["a,b}"], &["a"]);
}

#[test]
fn a_backslash_takes_the_meaning_away() {
    check(Reading::Name, r"\*", &["*"], &["a", r"\*"]);
    check(Reading::Name, r"\{a,b\}", &["{a,b}"], &["a"]);
    check(Reading::Name, r"{a\,b,c}", &["a,b", "c"], &["a"]);
    check(Reading::Name, r"\\", &[r"\"], &[]);
}

#[test]
fn a_literal_glob_means_exactly_its_text() {
    let glob = Glob::literal("a*{b");
    assert!(glob.matches("a*{b") && !glob.matches("axx{b"));
}

#[test]
fn a_broken_pattern_is_refused_with_the_place() {
    let cases = [
        ("", GlobError::Empty),
        ("a\0b", GlobError::Nul { at: 1 }),
        ("ab[c", GlobError::UnclosedClass { at: 2 }),
        ("[]", GlobError::UnclosedClass { at: 0 }),
        ("[!", GlobError::UnclosedClass { at: 0 }),
        (r"[a\", GlobError::UnclosedClass { at: 0 }),
        ("[z-a]", GlobError::BackwardRange { at: 1 }),
        ("é{a,b", GlobError::UnclosedBrace { at: 2 }),
        ("a\\", GlobError::DanglingEscape),
    ];
    for (pattern, expected) in cases {
        assert_eq!(Glob::new(pattern, Reading::Path).unwrap_err(), expected, "{pattern:?}");
    }
}

#[test]
fn limits_hold_exactly() {
    let length = MAX_PATTERN_BYTES;
    assert!(Glob::new(&"a".repeat(length), Reading::Name).unwrap().matches(&"a".repeat(length)));
    let error = Glob::new(&"a".repeat(length + 1), Reading::Name).unwrap_err();
    assert_eq!(error, GlobError::TooLong { length: length + 1 });

    let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
    assert!(Glob::new(&nested(MAX_BRACE_DEPTH), Reading::Name).unwrap().matches("a"));
    let error = Glob::new(&nested(MAX_BRACE_DEPTH + 1), Reading::Name).unwrap_err();
    assert_eq!(error, GlobError::TooDeep { at: MAX_BRACE_DEPTH });
}

#[test]
fn hostile_patterns_end_at_once() {
    // Each of these takes a backtracking matcher longer than the universe has.
    let text = format!("{}b", "a".repeat(4000));
    let patterns = [
        format!("{}c", "*a".repeat(500)),
        format!("{}c", "**/".repeat(300)),
        format!("{}c", "{a,aa,*}".repeat(100)),
        format!("{}c", "{a,{a,{a,*}}}".repeat(70)),
        format!("{}c", "*".repeat(1000)),
        format!("{}c", "?*".repeat(500)),
    ];
    for pattern in patterns {
        for reading in [Reading::Name, Reading::Path, Reading::LoosePath] {
            check(reading, &pattern, &[], &[&text]);
        }
    }
}
