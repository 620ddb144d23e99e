//! Scripts loaded one after another into the same machine, seeing each other's top-level names.

use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::parse::{FreeNames, NestingLimit, Options, Permission, TopLevel};

const LIMITS: Limits = Limits {
    instructions: 50_000_000,
    call_depth: 1_000,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 256 << 20, records: 8 << 20 },
};

const SHARED: Options = Options {
    top_level_await: Permission::Refused,
    top_level_return: Permission::Refused,
    intrinsics: Permission::Refused,
    top_level: TopLevel::Shared,
    free_names: FreeNames::Allowed,
    nesting: NestingLimit::SAFE_ON_2_MIB,
    source_bytes: 100_000,
    check_regex: |_, _| Ok(()),
};

/// Runs the scripts in order; answers what each came to.
fn outcomes(scripts: &[&str]) -> Vec<String> {
    let mut vm = Vm::new(LIMITS, &[]).unwrap();
    let mut out = Vec::new();
    for source in scripts {
        if let Err(e) = vm.load_with(source, &SHARED) {
            out.push(format!("load: {e}"));
            continue;
        }
        out.push(match vm.run() {
            Step::Completed(v) => vm.text(v),
            Step::Threw(e) => format!("threw {}", vm.text(e)),
            other => format!("{other:?}"),
        });
    }
    out
}

#[test]
fn a_later_script_sees_what_an_earlier_one_declared() {
    let found = outcomes(&[
        "var v = 1; let l = 2; const c = 3; class K { static n = 4 } function f() { return l + v }",
        "v + l + c + K.n + f()",
        "l = 20; v = 10; f()",
        "const g = () => l++; g(); g(); l",
        "globalThis.v + typeof globalThis.l + typeof globalThis.f + typeof K",
    ]);
    assert_eq!(found[1..], ["13", "30", "22", "10undefinedfunctionfunction"]);
}

#[test]
fn a_lexical_name_hides_a_property_of_the_global_object_even_where_that_was_found_before() {
    let found = outcomes(&[
        "globalThis.x = 'property'; function read() { return x } read()",
        "let x = 'lexical'; read() + globalThis.x",
        "read()",
    ]);
    assert_eq!(found, ["property", "lexicalproperty", "lexical"]);
}

#[test]
fn shared_names_have_their_dead_zone_and_constants_stay() {
    let found = outcomes(&[
        "function early() { return later } function assign() { later = 1 } early()",
        "try { early() } catch (e) { e.name + ': ' + e.message }",
        "let r; try { early() } catch (e) { r = e.message } let later = 5; r + early()",
        "const fixed = 1; try { fixed = 2 } catch (e) { e.message + fixed }",
        "throw 1; let never = 2",
        "try { never } catch (e) { e.message }",
        "try { never = 1 } catch (e) { e.message }",
        "typeof nothing",
        "try { typeof never } catch (e) { e.message }",
    ]);
    let expected = [
        "threw ReferenceError: later is not defined",
        "ReferenceError: later is not defined",
        "Cannot access 'later' before initialization5",
        "Assignment to constant variable.1",
        "threw 1",
        "Cannot access 'never' before initialization",
        "Cannot access 'never' before initialization",
        "undefined",
        "Cannot access 'never' before initialization",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_name_is_declared_once_and_a_refused_script_declares_nothing() {
    let found = outcomes(&[
        "let a = 1; var b = 2; function c() {}",
        "let fresh = 1; let a = 2;",
        "typeof fresh",
        "var fresh = 1; var a;",
        "typeof fresh",
        "const b = 1",
        "class c {}",
        "function a() {}",
        "var b; function c() { return 7 } c() + b",
        "let Object; typeof Object",
    ]);
    let expected = [
        "undefined",
        "threw SyntaxError: Identifier 'a' has already been declared",
        "undefined",
        "threw SyntaxError: Identifier 'a' has already been declared",
        "undefined",
        "threw SyntaxError: Identifier 'b' has already been declared",
        "threw SyntaxError: Identifier 'c' has already been declared",
        "threw SyntaxError: Identifier 'a' has already been declared",
        "9",
        "undefined",
    ];
    assert_eq!(found, expected);
}
