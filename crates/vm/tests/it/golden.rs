//! Blobs from the past: each is read as it was, or refused by name. `UPDATE=1 cargo test` writes them anew.
//!
//! Two promises. How things are spelled does not change within a format: a program that is fixed here must be the same
//! bytes for ever. And a snapshot of an older engine is refused with both fingerprints, never misread.

use outrigger_vm::code::{
    Base, Capture, Constant, Function, FunctionKind, Handler, Op, Program, Template, WINDOW,
};
use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::snapshot::{EnvelopeError, FORMAT, SnapshotError, fingerprint};
use outrigger_vm::value::Value;
use std::path::PathBuf;

const LIMITS: Limits = Limits {
    instructions: 1_000_000,
    call_depth: 100,
    host_calls: 8,
    heap: outrigger_vm::heap::Limits { bytes: 8 << 20, records: 1 << 18 },
};

/// What stands before a payload.
const HEADER: usize = 26;

fn golden(name: &str, now: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{FORMAT}"));
    let path = folder.join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(&path, now()).expect("the file can be written");
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A program of every part, made by hand so that the compiler has no say.
fn fixed() -> Program {
    let base = Base { functions: 2, constants: 3, sites: 4, templates: 5 };
    let main = [
        Op::LoadK(1, 3),
        Op::AddInt(2, 1, -7),
        Op::JNotLtInt(1, -300, 4),
        Op::GetProp(2, 1, 4),
        Op::Closure(3, 3),
        Op::Call(2, 3, 1),
        Op::Template(1, 5),
        Op::Loop(9, 1),
        Op::Ret(2),
    ];
    let inner = [Op::GetCap(1, 0), Op::RetUndef];
    let mut code = [&main[..], &inner[..]].concat();
    code.resize(code.len() + WINDOW, Op::RetUndef);
    let function = |start: usize, len: usize, kind| Function {
        name: Some(4),
        kind,
        start: start as u32,
        len: len as u32,
        registers: 6,
        parameters: 1,
        length: 1,
        captures: vec![],
        handlers: vec![],
        positions: vec![(0, 5), (3, 2)],
        span: (2, 30),
        keeps_arguments: false,
        hidden: false,
    };
    let script = Function {
        handlers: vec![Handler { start: 0, end: 2, target: 8, register: 1 }],
        ..function(0, main.len(), FunctionKind::Script)
    };
    let closure = Function {
        captures: vec![Capture::Register(1)],
        keeps_arguments: true,
        ..function(main.len(), inner.len(), FunctionKind::AsyncArrow)
    };
    Program {
        base,
        code,
        functions: vec![script, closure],
        constants: vec![
            Constant::Number(0.5),
            Constant::String("name".encode_utf16().collect()),
            Constant::String("\u{1F600}".encode_utf16().collect()),
            Constant::BigInt("12345678901234567890".into()),
        ],
        sites: vec![4],
        templates: vec![Template { cooked: vec![None, Some(4)], raw: vec![5, 4] }],
        source: "a source of thirty-two characters".into(),
    }
}

#[test]
fn the_spelling_of_programs_does_not_change_within_a_format() {
    let payload = || fixed().to_bytes().expect("the engine works")[HEADER..].to_vec();
    assert_eq!(payload(), golden("program.payload.bin", payload), "a new spelling takes a new FORMAT");
    let bytes = fixed().to_bytes().expect("the engine works");
    let back = Program::from_bytes(&bytes).expect("it is a program");
    assert_eq!(back.to_bytes().expect("the engine works"), bytes);
}

#[test]
fn an_old_snapshot_ends_as_it_would_have_or_is_refused_by_name() {
    let bytes = golden("suspended.snapshot.bin", || {
        let mut vm = Vm::new(LIMITS, &["ask"]).expect("the engine starts");
        vm.load("const n = ask(1); [n, n + 1].join('-')").expect("it loads");
        assert!(matches!(vm.run(), Step::Suspended(_)));
        vm.snapshot().expect("the engine works")
    });
    let ours = fingerprint().expect("the engine works");
    let theirs = u64::from_le_bytes(bytes[10..18].try_into().expect("a header is there"));
    match Vm::restore(&bytes, LIMITS) {
        Ok(mut vm) => {
            assert_eq!(theirs, ours);
            let Step::Completed(value) = vm.resume(Ok(Value::int(4))) else { panic!("it must end") };
            assert_eq!(vm.text(value), "4-5");
        }
        Err(SnapshotError::Envelope(error)) => {
            assert_ne!(theirs, ours);
            assert_eq!(error, EnvelopeError::Engine { expected: ours, found: theirs });
            let said = error.to_string();
            assert!(
                said.contains(&format!("{ours:016x}")) && said.contains(&format!("{theirs:016x}")),
                "{said}"
            );
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_snapshot_of_another_format_is_refused_by_name() {
    let mut vm = Vm::new(LIMITS, &["ask"]).expect("the engine starts");
    vm.load("ask(1)").expect("it loads");
    vm.run();
    let mut bytes = vm.snapshot().expect("the engine works");
    bytes[8..10].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    let error = Vm::restore(&bytes, LIMITS).map(|_| ()).expect_err("it is of another format");
    assert_eq!(error.to_string(), format!("format version mismatch: expected {FORMAT}, got {}", FORMAT + 1));
}
