//! The runner as people run it, against our own small sample: the whole way without the suite being present.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the program on a checkout, with a ledger of its own.
#[expect(clippy::disallowed_methods, reason = "the test runs the program that it tests")]
fn test262(checkout: &Path, ledger: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger-test262"));
    command.arg("--path").arg(checkout).arg("--ledger").arg(ledger).args(more);
    command.output().expect("the runner starts")
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sample")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A checkout with our harness and one test.
fn checkout_with(name: &str, test: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("test")).expect("a folder for tests");
    std::fs::create_dir_all(folder.path().join("harness")).expect("a folder for the harness");
    for file in std::fs::read_dir(sample().join("harness")).expect("our harness") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), folder.path().join("harness").join(file.file_name())).expect("a copy");
    }
    std::fs::write(folder.path().join("test").join(name), test).expect("the test");
    folder
}

#[test]
fn our_own_sample_passes_without_a_ledger() {
    let none = tempfile::tempdir().expect("a folder").path().join("ledger.txt");
    let output = test262(&sample(), &none, &["--verbose"]);
    let tests = std::fs::read_dir(sample().join("test")).expect("the sample").count();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output), format!("{tests} passed, 0 failed\n100.00 %, 0 crashes; left out: \n"));
}

#[test]
fn our_own_sample_passes_from_a_snapshot_in_another_process() {
    let none = tempfile::tempdir().expect("a folder").path().join("ledger.txt");
    let output = test262(&sample(), &none, &["--verbose", "--hop"]);
    let tests = std::fs::read_dir(sample().join("test")).expect("the sample").count();
    assert!(output.status.success(), "{}", text(&output));
    // The tests of early errors have nothing to go on with.
    let early = 4;
    let totals =
        format!("{tests} passed, 0 failed\n100.00 %, 0 crashes; left out: \n{} went on", tests - early);
    assert!(text(&output).starts_with(&totals), "{}", text(&output));
}

#[test]
fn a_failure_is_told_until_it_is_in_the_ledger_and_again_when_it_is_mended() {
    let checkout = checkout_with("broken.js", "/*--- ---*/ assert(false, 'broken');");
    let ledger = checkout.path().join("ledger.txt");

    let output = test262(checkout.path(), &ledger, &["--verbose"]);
    assert!(!output.status.success());
    let expected = "broken.js: threw Test262Error: broken\n0 passed, 1 failed\n0.00 %, 0 crashes; left out: \nnew failure: broken.js\n";
    assert_eq!(text(&output), expected);

    assert!(test262(checkout.path(), &ledger, &["--update-ledger"]).status.success());
    assert!(test262(checkout.path(), &ledger, &[]).status.success());

    std::fs::write(checkout.path().join("test/broken.js"), "/*--- ---*/").expect("mended");
    let output = test262(checkout.path(), &ledger, &[]);
    assert!(!output.status.success());
    assert!(text(&output).ends_with("in the ledger, but passes: broken.js\n"), "{}", text(&output));
}

#[test]
fn a_checkout_without_tests_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("test")).expect("a folder for tests");
    let output = test262(folder.path(), &folder.path().join("ledger.txt"), &[]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no test matches"));
}
