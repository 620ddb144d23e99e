//! Where names lead: registers, captures, globals, and which uses must check.

use super::{ok, ok_with, options};
use outrigger_vm::ast::{BindingKind, Check, FunctionKind, Program, Target};
use outrigger_vm::parse::{Options, TopLevel};

/// Every use and declaration of `name`, in order: where it leads, and a `?` if it must check.
fn uses(source: &str, name: &str) -> Vec<String> {
    uses_in(&ok(source), name)
}

fn uses_in(program: &Program, name: &str) -> Vec<String> {
    let mut found: Vec<_> = program
        .references()
        .iter()
        .filter(|reference| program.text(reference.name).to_string_lossy() == name)
        .collect();
    found.sort_by_key(|reference| reference.span.start);
    let show = |reference: &&outrigger_vm::ast::Reference| {
        let place = match reference.target {
            Target::Local(_) => "local".to_owned(),
            Target::Captured { slot, .. } => format!("captured {slot}"),
            Target::Global => "global".to_owned(),
        };
        place + if reference.check == Check::Initialised { "?" } else { "" }
    };
    found.iter().map(show).collect()
}

fn binding(program: &Program, name: &str) -> outrigger_vm::ast::Binding {
    let mut found = program.bindings().iter().filter(|b| program.text(b.name).to_string_lossy() == name);
    let binding = *found.next().expect("the name is declared");
    assert!(found.next().is_none(), "the name is declared once");
    binding
}

#[test]
fn a_use_after_its_declaration_needs_no_check() {
    assert_eq!(uses("let a = 1; a", "a"), ["local", "local"]);
    assert_eq!(uses("a; let a = 1", "a"), ["local?", "local"]);
    assert_eq!(uses("let a = a", "a"), ["local", "local?"]);
    assert_eq!(uses("a = 1; var a", "a"), ["local", "local"]);
    assert_eq!(uses("a; class a {} a", "a"), ["local?", "local", "local"]);
    assert_eq!(uses("for (let a of a) a", "a"), ["local", "local?", "local"]);
    assert_eq!(uses("for (let a = 0; a < 1; a++) a", "a"), ["local"; 4]);
}

#[test]
fn a_use_in_another_case_needs_a_check() {
    let source = "switch (1) { case 0: let a = 1; a; case 1: a; () => a }";
    assert_eq!(uses(source, "a"), ["local", "local", "local?", "captured 0?"]);
}

#[test]
fn a_function_made_after_the_declaration_needs_no_check() {
    assert_eq!(uses("let a = 1; () => a", "a"), ["local", "captured 0"]);
    assert_eq!(uses("(() => a); let a = 1", "a"), ["captured 0?", "local"]);
    // A declared function can be called before its text is reached.
    assert_eq!(uses("let a = 1; function f() { a }", "a"), ["local", "captured 0?"]);
    assert_eq!(uses("let a = 1; { function f() { () => a } }", "a"), ["local", "captured 0"]);
}

#[test]
fn captures_pass_through_the_functions_in_between() {
    let program = ok("let a = 1, b = 2; () => { b; return () => a }");
    let captures: Vec<Vec<String>> = program
        .functions()
        .iter()
        .map(|function| {
            let names = program.list(function.captures).iter();
            names.map(|&id| program.text(program.binding(id).name).to_string_lossy()).collect()
        })
        .collect();
    assert_eq!(captures, [vec![], vec!["b".to_owned(), "a".to_owned()], vec!["a".to_owned()]]);
    assert_eq!(uses_in(&program, "a"), ["local", "captured 0"]);
    assert!(binding(&program, "a").captured);
}

#[test]
fn a_loop_copies_its_names_only_if_they_are_captured() {
    let loops = |source: &str| {
        let program = ok(source);
        let id = binding(&program, "i").scope;
        program.scope(id).has_captured
    };
    assert!(!loops("for (let i = 0; i < 3; i++) i"));
    assert!(loops("for (let i = 0; i < 3; i++) () => i"));
}

#[test]
fn shared_top_level_names_are_globals() {
    let shared = Options { top_level: TopLevel::Shared, ..options() };
    let program = ok_with("let a = 1; var process; { let b; b } () => [a, process]", &shared);
    assert_eq!(uses_in(&program, "a"), ["global", "global"]);
    assert_eq!(uses_in(&program, "process"), ["global", "global"]);
    assert_eq!(uses_in(&program, "b"), ["local", "local"]);
}

#[test]
fn what_a_function_has_implicitly_is_captured_by_its_arrows() {
    let program = ok("function f() { () => [this, arguments, new.target] } () => this");
    let of = |kind: FunctionKind| program.functions().iter().filter(move |f| f.kind == kind);
    let f = of(FunctionKind::Ordinary).next().unwrap();
    for binding in [f.this, f.arguments, f.new_target] {
        assert!(program.binding(binding.unwrap()).captured);
    }
    assert!(of(FunctionKind::Arrow).all(|arrow| arrow.this.is_none() && !arrow.captures.is_empty()));
    let script = program.function(Program::SCRIPT);
    assert!(program.binding(script.this.unwrap()).captured);
    assert_eq!(uses("arguments", "arguments"), ["global"]);
}

#[test]
fn this_is_checked_in_derived_constructors_only() {
    assert_eq!(uses("class A extends B { constructor() { super(); this.a } }", "this"), ["local?"]);
    assert_eq!(uses("class A extends B { constructor() { () => this } }", "this"), ["captured 0?"]);
    assert_eq!(uses("class A { constructor() { this } b() { this } c = this }", "this"), ["local"; 3]);
}

#[test]
fn parameters_with_expressions_have_a_scope_of_their_own() {
    let program = ok("function f(a, b = () => a) { var a; a }");
    let f = program.functions().iter().find(|f| f.kind == FunctionKind::Ordinary).unwrap();
    assert_ne!(f.scope, f.body_scope);
    let copy = program.bindings().iter().find(|b| b.copies.is_some()).unwrap();
    assert_eq!((copy.kind, copy.scope), (BindingKind::Var, f.body_scope));
    assert_eq!(program.binding(copy.copies.unwrap()).kind, BindingKind::Param);
    assert_eq!((f.length, f.simple_params), (1, false));

    let program = ok("function f(a, b) { var a }");
    let f = program.functions().iter().find(|f| f.kind == FunctionKind::Ordinary).unwrap();
    assert_eq!(f.scope, f.body_scope);
    assert_eq!((f.length, f.simple_params), (2, true));
    assert_eq!(uses("function f(a = b, b) {}", "b"), ["local?", "local"]);
}

#[test]
fn own_names_exist_only_if_used() {
    let own = |source: &str| ok(source).functions().iter().any(|f| f.self_name.is_some());
    assert!(own("(function f() { f() })"));
    assert!(!own("(function f() {})"));
    assert!(!own("(function f(f) { f() })"));
    assert_eq!(uses("(function f() { f; () => f })", "f"), ["local", "captured 0"]);
    // Methods run after the class has its name; its computed keys do not.
    assert_eq!(uses("(class A { [A]() { A } static a = A })", "A"), ["local?", "captured 0", "captured 0"]);
}

#[test]
fn private_names_resolve_like_variables() {
    let source = "class A { #a = 1; b(c) { () => c.#a; return #a in c } static #d() {} #e() {} }";
    assert_eq!(uses(source, "#a"), ["captured 0", "captured 0", "captured 0"]);
    // A static private method is defined with the class, one of instances by the initialiser.
    assert_eq!(uses(source, "#d"), ["local"]);
    assert_eq!(uses(source, "#e"), ["captured 1"]);
}

#[test]
fn assignments_beside_the_declaration_are_noted() {
    let program = ok("let a = 1, b = 1, c, [d] = []; b = 2; c++; [d] = []; const e = 1; e += 1; a");
    let reassigned = ["a", "b", "c", "d", "e"].map(|name| binding(&program, name).reassigned);
    assert_eq!(reassigned, [false, true, true, true, true]);
}

#[test]
fn functions_in_a_block_are_hoisted_to_its_start() {
    let program = ok("{ f(); function f() {} } function g() {} function g() {}");
    let scopes: Vec<usize> = program
        .bindings()
        .iter()
        .map(|binding| program.list(program.scope(binding.scope).functions).len())
        .collect();
    assert_eq!(scopes, [1, 2]);
}

/// What a compiler relies on: a closure can copy each of its captures from the function around it.
fn check_captures(program: &Program) {
    for function in program.functions() {
        for &captured in program.list(function.captures) {
            let binding = program.binding(captured);
            assert!(binding.captured && program.scope(binding.scope).has_captured);
            let parent = function.parent.expect("the script captures nothing");
            let owner = program.scope(binding.scope).function;
            let outer = program.list(program.function(parent).captures);
            assert!(owner == parent || outer.contains(&captured));
        }
    }
}

#[test]
fn every_capture_is_at_hand_where_the_closure_is_made() {
    for source in [
        super::hostile::SAMPLE,
        "let a; () => () => () => { class A extends a { [a] = () => a; #b() { return a.#b } static { () => this } } }",
        "function f(a, b = () => [a, arguments, f]) { var a; return () => [() => this, a, new.target] }",
        "class A extends B { constructor() { (() => (() => super(this))())() } m() { return () => super.m } }",
    ] {
        check_captures(&ok(source));
    }
}
