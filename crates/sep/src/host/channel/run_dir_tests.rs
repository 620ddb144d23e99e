//! Directories for sockets: fresh, closed, short enough, and swept only when nobody uses them.

use std::cell::Cell;
use std::time::SystemTime;

use super::*;

fn dirs(root: &Path) -> RunDirs {
    let temporary = root.join("tmp");
    fs::create_dir(&temporary).expect("the root is empty");
    RunDirs { runtime: Some(root.join("runtime")), state: root.join("state"), temporary }
}

/// Names that count up.
fn names() -> impl FnMut() -> io::Result<String> {
    let next = Cell::new(0);
    move || {
        next.set(next.get() + 1);
        Ok(format!("{:08x}", next.get()))
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn a_directory_is_closed_to_others_and_gone_when_it_is_dropped() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let dirs = dirs(root.path());
    let dir = RunDir::create(&dirs, names()).expect("the runtime directory can be used");
    assert_eq!(dir.path(), root.path().join("runtime/sep-00000001"));
    assert_eq!(fs::metadata(dir.path()).expect("it is there").permissions().mode() & 0o7777, 0o700);
    File::create(dir.socket()).expect("we may write there");
    drop(dir);
    assert!(is_empty(&root.path().join("runtime")));
}

#[test]
fn a_path_of_a_hundred_bytes_is_used_and_one_byte_more_falls_through() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut dirs = dirs(root.path());
    let rest = MAX_PATH_BYTES - "/sep-00000001/s".len() - root.path().as_os_str().len() - 1;
    dirs.runtime = Some(root.path().join("r".repeat(rest)));
    let dir = RunDir::create(&dirs, names()).expect("it just fits");
    assert_eq!(dir.socket().as_os_str().len(), MAX_PATH_BYTES);
    dirs.runtime = Some(root.path().join("r".repeat(rest + 1)));
    let dir = RunDir::create(&dirs, names()).expect("the state is next");
    assert!(dir.path().starts_with(root.path().join("state/run")), "{dir:?}");
    dirs.state = root.path().join("x".repeat(90));
    let dir = RunDir::create(&dirs, names()).expect("the temporary directory is last");
    assert!(dir.path().starts_with(root.path().join("tmp")), "{dir:?}");
    assert!(!dirs.state.exists(), "a place that cannot be used is not made either");
    dirs.temporary = root.path().join("y".repeat(90));
    let tried = RunDir::create(&dirs, names()).expect_err("no place is left");
    assert_eq!(tried.len(), 3);
    assert!(tried[0].why.contains("101 bytes"), "{tried:?}");
}

#[test]
fn a_place_where_others_may_write_is_not_used_unless_it_is_sticky() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let dirs = dirs(root.path());
    let runtime = root.path().join("runtime");
    fs::create_dir(&runtime).expect("the root is empty");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let dir = RunDir::create(&dirs, names()).expect("the state is next");
    assert!(dir.path().starts_with(root.path().join("state")));
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o1777)).expect("it is ours");
    let dir = RunDir::create(&dirs, names()).expect("nobody can replace what is ours there");
    assert!(dir.path().starts_with(&runtime));
}

#[test]
fn a_name_that_is_taken_is_not_used_even_if_it_is_a_link() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let dirs = dirs(root.path());
    let runtime = root.path().join("runtime");
    fs::create_dir(&runtime).expect("the root is empty");
    std::os::unix::fs::symlink(root.path().join("tmp"), runtime.join("sep-00000001")).expect("it is ours");
    let dir = RunDir::create(&dirs, names()).expect("another name is tried");
    assert_eq!(dir.path(), runtime.join("sep-00000002"));
    assert!(is_empty(&root.path().join("tmp")));
}

#[test]
fn the_sweep_removes_what_a_killed_host_left_and_nothing_else() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let dirs = dirs(root.path());
    let runtime = root.path().join("runtime");
    let living = RunDir::create(&dirs, names()).expect("the runtime directory can be used");
    let make = |name: &str, files: &[&str]| {
        let path = runtime.join(name);
        DirBuilder::new().mode(0o700).create(&path).expect("the name is free");
        for file in files {
            File::create(path.join(file)).expect("it is ours");
        }
        path
    };
    let dead = make("sep-dead0000", &["lock", "s"]);
    let full = make("sep-f0110000", &["lock", "precious"]);
    let fresh = make("sep-f2e50000", &[]);
    let old = make("sep-01d00000", &[]);
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    File::open(&old).and_then(|dir| dir.set_modified(hour_ago)).expect("it is ours");
    let foreign = make("something-else", &["lock"]);
    let open = make("sep-0be00000", &["lock"]);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("it is ours");
    assert_eq!(sweep(&dirs), 2);
    assert!(!dead.exists() && !old.exists());
    for stays in [living.path(), &fresh, &foreign, &open, &full.join("precious")] {
        assert!(stays.exists(), "{}", stays.display());
    }
}
