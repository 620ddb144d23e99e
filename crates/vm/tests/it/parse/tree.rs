//! What the tree looks like where the grammar is tricky.

use super::{ok, ok_with, options};
use outrigger_vm::ast::{
    BinaryOp, Body, Expr, ExprId, Flavour, Link, Pattern, Program, PropertyKind, Stmt, StmtId, Text,
};
use outrigger_vm::parse::{Options, Permission};

fn statements(program: &Program) -> Vec<StmtId> {
    match program.function(Program::SCRIPT).body {
        Body::Statements(list) => program.list(list).to_vec(),
        Body::Expr(_) | Body::Fields(_) => panic!("a script has statements"),
    }
}

/// The expression of the only statement.
fn only(program: &Program) -> ExprId {
    let statements = statements(program);
    assert_eq!(statements.len(), 1);
    match program.stmt(statements[0]) {
        Stmt::Expr(expr) => expr,
        other => panic!("{other:?}"),
    }
}

/// An expression with every operation in parentheses.
fn show(program: &Program, id: ExprId) -> String {
    match program.expr(id) {
        Expr::Ident(name) => program.text(program.reference(name).name).to_string_lossy(),
        Expr::Number(value) => value.to_string(),
        Expr::Paren(inner) => show(program, inner),
        Expr::Binary { op, left, right } => {
            let op = match op {
                BinaryOp::Add => "+",
                BinaryOp::Sub => "-",
                BinaryOp::Mul => "*",
                BinaryOp::Div => "/",
                BinaryOp::Exp => "**",
                BinaryOp::In => "in",
                _ => "?",
            };
            format!("({} {op} {})", show(program, left), show(program, right))
        }
        Expr::Conditional { test, yes, no } => {
            format!("({} ? {} : {})", show(program, test), show(program, yes), show(program, no))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn operators_bind_as_they_should() {
    for (source, shown) in [
        ("a - b - c", "((a - b) - c)"),
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a ** b ** c", "(a ** (b ** c))"),
        ("(a + b) * c", "((a + b) * c)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a / b / c", "((a / b) / c)"),
        ("a in b in c", "((a in b) in c)"),
    ] {
        let program = ok(source);
        assert_eq!(show(&program, only(&program)), shown);
    }
}

#[test]
fn semicolons_are_supplied_where_the_language_says_so() {
    for (source, count) in [
        ("a\nb", 2),
        ("a\n(b)", 1),
        ("a\n[b]", 1),
        ("a\n++b", 2),
        ("a\n/b/c", 1),
        ("a;/b/g", 2),
        ("do ; while (a) b", 2),
        ("var a\nvar b", 2),
        ("(function () { return\n1 })", 1),
        ("async\nfunction f() {}", 2),
        ("x\n`a`", 1),
    ] {
        assert_eq!(statements(&ok(source)).len(), count, "{source}");
    }
}

#[test]
fn an_optional_chain_ends_at_parentheses() {
    let program = ok("(a?.b).c");
    let Expr::Member { link: Link::Plain, object, .. } = program.expr(only(&program)) else { panic!() };
    let Expr::Paren(inner) = program.expr(object) else { panic!() };
    assert!(matches!(program.expr(inner), Expr::OptionalChain(_)));
    let program = ok("a?.b.c");
    let Expr::OptionalChain(chain) = program.expr(only(&program)) else { panic!() };
    let Expr::Member { link: Link::Plain, object, .. } = program.expr(chain) else { panic!() };
    assert!(matches!(program.expr(object), Expr::Member { link: Link::Optional, .. }));
}

#[test]
fn a_parenthesised_name_is_a_target_that_names_nothing() {
    for (source, parenthesised) in [("a = 1", false), ("(a) = 1", true)] {
        let program = ok(source);
        let Expr::Assign { target, .. } = program.expr(only(&program)) else { panic!() };
        assert_eq!(matches!(program.pattern(target), Pattern::ParenName(_)), parenthesised);
    }
}

#[test]
fn literals_have_their_values() {
    for (source, value) in [
        ("0x1fffffffffffff", 9007199254740991.0),
        ("0x20000000000001", 9007199254740992.0),
        ("0x20000000000003", 9007199254740996.0),
        ("0b101", 5.0),
        ("0o17", 15.0),
        ("1_000.5e1_0", 1_000.5e10),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e400", f64::INFINITY),
        ("123456789012345678", 123_456_789_012_345_680.0),
    ] {
        let program = ok(source);
        assert_eq!(program.expr(only(&program)), Expr::Number(value), "{source}");
    }
    let program = ok("0XFFn");
    let Expr::BigInt(digits) = program.expr(only(&program)) else { panic!() };
    assert_eq!(program.text(digits), Text::Latin1(b"0xff"));
}

#[test]
fn strings_and_templates_are_utf16() {
    let program = ok("('\\ud83d\\u{1f600}é\\\r\n\\0\\x41')");
    let Expr::String(text) = program.expr(program.unwrap_parens(only(&program))) else { panic!() };
    assert_eq!(program.text(text), Text::Wide(&[0xd83d, 0xd83d, 0xde00, 0xe9, 0, 0x41]));

    let program = ok("f`a\\u\r\n${1}\\n`");
    let Expr::TaggedTemplate { template, .. } = program.expr(only(&program)) else { panic!() };
    let chunks = program.list(program.template(template).chunks);
    assert_eq!(chunks[0].cooked, None);
    assert_eq!(program.text(chunks[0].raw), Text::Latin1(b"a\\u\n"));
    assert_eq!(program.text(chunks[1].cooked.unwrap()), Text::Latin1(b"\n"));
    assert_eq!(program.text(chunks[1].raw), Text::Latin1(b"\\n"));
}

#[test]
fn proto_is_marked_when_it_sets_the_prototype() {
    let kinds = |source: &str| {
        let program = ok(source);
        let Expr::Object(list) = program.expr(program.unwrap_parens(only(&program))) else { panic!() };
        program.list(list).iter().map(|property| property.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds("({ __proto__: 1 })"), [PropertyKind::Proto]);
    assert_eq!(kinds("({ '__proto__': 1 })"), [PropertyKind::Proto]);
    assert_eq!(kinds("({ ['__proto__']: 1 })"), [PropertyKind::Value]);
    assert_eq!(
        kinds("let __proto__; ({ __proto__ })".strip_prefix("let __proto__; ").unwrap()),
        [PropertyKind::Shorthand]
    );
}

#[test]
fn a_script_that_waits_is_async() {
    let flavour = |source: &str| ok(source).function(Program::SCRIPT).flavour;
    assert_eq!(flavour("await 1"), Flavour::Async);
    assert_eq!(flavour("for await (const a of b) ;"), Flavour::Async);
    assert_eq!(flavour("async () => await 1"), Flavour::Plain);
}

#[test]
fn intrinsics_are_for_the_prelude_only() {
    let prelude = Options { intrinsics: Permission::Allowed, ..options() };
    let program = ok_with("%ToLength(a, ...b)", &prelude);
    let Expr::Intrinsic { name, args } = program.expr(only(&program)) else { panic!() };
    assert_eq!(program.text(name), Text::Latin1(b"ToLength"));
    assert_eq!(program.args(args).len(), 2);
    super::parse_error("%ToLength(a)");
}

#[test]
fn functions_and_classes_know_their_own_text() {
    let source =
        "class A { static async *a() {} get b() {} } async function c() {} x = d => d; ({ *e() {} })";
    let program = ok(source);
    let mut spans: Vec<_> = program.functions().iter().skip(1).map(|function| function.span).collect();
    spans.push(program.class(outrigger_vm::ast::ClassId::from_index(0)).span);
    let texts: Vec<&str> = spans.iter().map(|span| &source[span.start as usize..span.end as usize]).collect();
    assert_eq!(
        texts,
        [
            "async *a() {}",
            "get b() {}",
            "async function c() {}",
            "d => d",
            "*e() {}",
            "class A { static async *a() {} get b() {} }"
        ]
    );
}
