//! What people read when their script is wrong.

use super::problems;

fn shown(source: &str) -> String {
    problems(source)[0].render(source)
}

#[test]
fn a_message_says_what_was_found_and_what_was_expected() {
    assert_eq!(
        shown("let a = f(1, 2;"),
        "1:15: expected `,`, found `;`\n  let a = f(1, 2;\n                ^"
    );
    assert_eq!(
        shown("if (a) {\n  b("),
        "2:5: expected an expression, found the end of the source\n    b(\n      ^"
    );
    assert_eq!(
        shown("let total = 1;\n\tlet total = 2;"),
        "2:6: `total` has already been declared\n   let total = 2;\n       ^^^^^"
    );
    assert_eq!(
        shown("a\r\nfetch('x')"),
        "2:1: `fetch` is not available in this environment\n  fetch('x')\n  ^^^^^"
    );
}

#[test]
fn columns_count_utf16_units_and_carets_count_characters() {
    let source = "'😀é'; let let";
    let problem = &problems(source)[0];
    assert_eq!((problem.line, problem.column), (1, 12));
    assert_eq!(problem.render(source), "1:12: `let` is a reserved word\n  '😀é'; let let\n            ^^^");
}

#[test]
fn a_very_long_line_is_shown_around_the_place() {
    let source = format!("{}let let{}", "a;".repeat(1000), ";b".repeat(1000));
    let rendered = shown(&source);
    assert!(rendered.lines().all(|line| line.chars().count() < 140), "{rendered}");
    let lines: Vec<&str> = rendered.lines().collect();
    let caret = lines[2].find('^').unwrap();
    assert_eq!(&lines[1][caret..caret + 3], "let");
}
