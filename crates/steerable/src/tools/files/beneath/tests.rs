//! Paths that mean harm, and trees that change while they are looked at.

use super::*;
use crate::tools::{Commands, Hosts};
use std::os::unix::fs::symlink;

fn grants(root: &Path) -> Grants {
    Grants {
        read_roots: vec![root.to_owned()],
        write_roots: Vec::new(),
        hosts: Hosts::none(),
        commands: Commands::Deny,
    }
}

fn tree() -> (tempfile::TempDir, tempfile::TempDir) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("a")).unwrap();
    std::fs::write(root.path().join("a/file"), "f").unwrap();
    symlink("a/file", root.path().join("inside")).unwrap();
    symlink(outside.path().join("secret"), root.path().join("out")).unwrap();
    symlink(outside.path(), root.path().join("outdir")).unwrap();
    symlink("/proc/self/root", root.path().join("magic")).unwrap();
    (root, outside)
}

fn opens(root: &Path, path: &str) -> Result<(), Trouble> {
    let spot = locate(&grants(root), Need::Read, path)?;
    let opened = spot.open()?;
    spot.ordinary(&rustix::fs::fstat(&opened).unwrap())
}

#[test]
fn what_is_in_the_root_opens_by_any_of_its_names() {
    let (root, _outside) = tree();
    let whole = root.path().join("a/file").display().to_string();
    for path in ["a/file", "./a//file", "a/../a/file", "inside", whole.as_str()] {
        assert_eq!(opens(root.path(), path), Ok(()), "{path}");
    }
}

#[test]
fn a_path_through_a_link_from_outside_leads_into_the_root() {
    let (root, outside) = tree();
    let door = outside.path().join("door");
    symlink(root.path(), &door).unwrap();
    let real = std::fs::canonicalize(root.path()).unwrap();
    assert_eq!(opens(&real, door.join("a/file").to_str().unwrap()), Ok(()));
    for out in ["../secret", "out", "outdir/secret"] {
        let path = door.join(out).display().to_string();
        assert!(matches!(opens(&real, &path), Err(Trouble::Denied(_))), "{path}");
    }
}

#[test]
fn nothing_leads_out_of_the_root() {
    let (root, outside) = tree();
    let secret = outside.path().join("secret").display().to_string();
    let around = format!("{}/../etc/passwd", root.path().display());
    let hostile = [
        "/etc/passwd",
        "../../../../etc/passwd",
        "a/../../x",
        "out",
        "outdir/secret",
        "magic/etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        secret.as_str(),
        around.as_str(),
    ];
    for path in hostile {
        match opens(root.path(), path) {
            Err(Trouble::Denied(_)) => {}
            other => panic!("{path}: {other:?}"),
        }
    }
    for path in ["", "a\0b", "~/x", &"x/".repeat(3000)] {
        match opens(root.path(), path) {
            Err(Trouble::Failed(_)) => {}
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[test]
fn without_the_kernels_help_no_link_is_followed_at_all() {
    let (root, _outside) = tree();
    let opened = open_root(root.path()).unwrap();
    let step = |way: &str| step_by_step(&opened, Path::new(way), OFlags::RDONLY).map(|_| ());
    assert_eq!(step("a/file"), Ok(()));
    assert_eq!(step("."), Ok(()));
    assert_eq!(step("inside"), Err(Errno::LOOP));
    assert_eq!(step("out"), Err(Errno::LOOP));
    assert!(step("outdir/secret").is_err());
    assert_eq!(step("../x"), Err(Errno::XDEV));
    assert_eq!(step("a/../../x"), Err(Errno::XDEV));
}

#[test]
fn pipes_devices_and_files_with_two_names_are_refused_without_waiting() {
    let (root, outside) = tree();
    let here = open_root(root.path()).unwrap();
    rustix::fs::mknodat(&here, "pipe", FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    std::fs::hard_link(outside.path().join("secret"), root.path().join("twin")).unwrap();
    let told = |path: &str| match opens(root.path(), path) {
        Err(Trouble::Denied(text) | Trouble::Failed(text)) => text,
        Ok(()) => "opened".to_owned(),
    };
    assert_eq!(told("pipe"), "`pipe` is a device, a pipe or a socket, not a file");
    assert_eq!(told("a"), "`a` is a folder");
    assert!(told("twin").contains("several names"), "{}", told("twin"));
    let dev = grants(Path::new("/dev"));
    let spot = locate(&dev, Need::Read, "null").unwrap();
    let opened = spot.open().unwrap();
    assert!(spot.ordinary(&rustix::fs::fstat(&opened).unwrap()).is_err());
}

#[test]
fn a_link_that_changes_all_the_time_never_leads_out() {
    let (root, outside) = tree();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let spinning = root.path().join("spin");
    std::fs::create_dir(root.path().join("good")).unwrap();
    std::fs::write(root.path().join("good/secret"), "harmless").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (good, bad) = (root.path().join("l1"), root.path().join("l2"));
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = symlink("good", &good);
                let _ = std::fs::rename(&good, &spinning);
                let _ = symlink(outside.path(), &bad);
                let _ = std::fs::rename(&bad, &spinning);
            }
        });
        let mut seen = 0;
        for _ in 0..5_000 {
            let spot = locate(&grants(root.path()), Need::Read, "spin/secret").unwrap();
            if let Ok(opened) = spot.open() {
                let text = std::io::read_to_string(std::fs::File::from(opened)).unwrap();
                assert_eq!(text, "harmless");
                seen += 1;
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(seen > 0, "the race was never run");
    });
}
