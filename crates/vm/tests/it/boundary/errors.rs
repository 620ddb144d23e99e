//! Errors that come from the host, and what people see of those that nobody caught.

use super::{LIMITS, machine, outcome, run, text};
use outrigger_vm::boundary::Plain;
use outrigger_vm::exec::{Step, Vm};

/// The script asks; the host answers with an error.
fn failing(source: &str, code: Option<&str>, details: Option<&Plain>) -> (Vm, Step) {
    let mut vm = machine(LIMITS, source);
    assert!(matches!(vm.run(), Step::Suspended(_)), "{source}");
    let error = vm.host_error("FetchError", "no route", code, details).expect("it fits");
    vm.answer(1, Err(error)).expect("it is outstanding");
    let step = vm.run();
    (vm, step)
}

#[test]
fn an_error_of_the_host_is_an_error_with_enumerable_properties() {
    let details = Plain::Object(vec![("status".into(), Plain::Number(503.0))]);
    let source = "try { ask() } catch (e) { [e instanceof Error, e instanceof TypeError, Object.keys(e).join(), e.name, e.message,
        e.code, e.details.status, String(e), e.stack.split('\\n')[0], JSON.stringify(e)] }";
    let (mut vm, step) = failing(source, Some("EHOST"), Some(&details));
    assert_eq!(
        outcome(&mut vm, step),
        "[true, false, \"name,message,code,details\", \"FetchError\", \"no route\", \"EHOST\", 503, \"FetchError: no route\", \"FetchError: no route\", \"{\\\"name\\\":\\\"FetchError\\\",\\\"message\\\":\\\"no route\\\",\\\"code\\\":\\\"EHOST\\\",\\\"details\\\":{\\\"status\\\":503}}\"]"
    );
    let (mut vm, step) = failing("try { ask() } catch (e) { Object.keys(e) }", None, None);
    assert_eq!(outcome(&mut vm, step), "[\"name\", \"message\"]");
    let (mut vm, step) = failing("try { ask() } catch (e) { e.details === null }", None, Some(&Plain::Null));
    assert_eq!(outcome(&mut vm, step), "true");
}

#[test]
fn an_error_of_the_host_that_nobody_catches_is_shown_with_code_and_details() {
    for (details, shown) in [
        (None, ""),
        (Some(text("try later")), " [details=try later]"),
        (Some(Plain::Null), " [details=null]"),
        (Some(Plain::Number(7.5)), " [details=7.5]"),
        (Some(Plain::Object(vec![("a".into(), Plain::Null)])), " [details=[object Object]]"),
        (Some(Plain::Array(vec![Plain::Number(1.0), text("x")])), " [details=1,x]"),
    ] {
        let (mut vm, step) = failing("ask()", Some("E1"), details.as_ref());
        assert_eq!(outcome(&mut vm, step), format!("threw FetchError: no route [code=E1]{shown}"));
    }
    for source in ["ask()", "await ask()", "const f = async () => await ask(); f()"] {
        let (mut vm, step) = failing(source, None, None);
        assert_eq!(outcome(&mut vm, step), "threw FetchError: no route", "{source}");
    }
}

#[test]
fn a_report_has_the_parts_of_an_error() {
    let (mut vm, step) = failing("function f() {\n  return ask();\n}\nf()", Some("E1"), Some(&text("d")));
    let Step::Threw(error) = step else { panic!("{step:?}") };
    let report = vm.report(error);
    assert_eq!(report.message, "FetchError: no route");
    assert_eq!(
        (report.name.as_deref(), report.code.as_deref(), report.details.as_deref()),
        (Some("FetchError"), Some("E1"), Some("d"))
    );
    assert_eq!(
        report.places.iter().map(|p| (p.function.as_str(), p.line)).collect::<Vec<_>>(),
        [("f", 2), ("", 4)]
    );
    assert_eq!(report.span(), Some((0, 32)));
    let mut vm = machine(LIMITS, "throw 5");
    let Step::Threw(five) = vm.run() else { panic!("it throws") };
    let report = vm.report(five);
    assert_eq!(
        (report.headline().as_str(), report.name, report.code, report.details),
        ("5", None, None, None)
    );
}

#[test]
fn a_thrown_text_that_is_longer_than_the_heap_is_cut() {
    for source in [
        "let s = 'x'; for (let i = 0; i < 28; i++) s += s; throw s",
        "let s = 'x'; for (let i = 0; i < 28; i++) s += s; const e = new Error(''); e.message = s; throw e",
        "let s = 'x'; for (let i = 0; i < 28; i++) s += s; const e = new Error(''); e.details = [s, s, s]; throw e",
    ] {
        let mut vm = machine(LIMITS, source);
        let Step::Threw(thrown) = vm.run() else { panic!("{source}") };
        let report = vm.report(thrown);
        assert!(report.headline().len() <= (8 << 20) + 100, "{source}: {}", report.headline().len());
    }
}

#[test]
fn a_thrown_bigint_of_millions_of_bits_is_not_spelled_out() {
    let mut vm = machine(LIMITS, "throw 1n << 4000000n");
    assert_eq!(run(&mut vm), "threw a BigInt of 4000001 bits");
    assert_eq!(run(&mut machine(LIMITS, "throw 2n ** 70n")), "threw 1180591620717411303424");
}
