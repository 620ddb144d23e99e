//! The built-in tools over real files, and what a toolbox holds.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use libtest_mimic::Trial;
use outrigger_steerable::tools::{Grants, NoDispatch, Programs, TodoStatus, Toolbox, denial};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::tools_kit::{call, data, error, grants, place, runtime, supervisor, text};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_file_is_read_by_lines_and_says_where_to_go_on,
        what_is_no_text_is_not_read,
        hostile_paths_are_denied_by_every_tool,
        a_folder_is_listed_and_searched_without_its_history,
        a_listing_stops_at_its_limit,
        a_file_is_written_at_once_and_keeps_its_permissions,
        nothing_is_written_outside_of_the_write_roots,
        an_edit_changes_one_place_or_says_why_not,
        tools_without_a_grant_are_not_listed_and_say_what_would_grant_them,
        arguments_that_do_not_fit_are_told_to_the_model,
        the_list_of_things_to_do_is_kept,
    ]
}

fn a_file_is_read_by_lines_and_says_where_to_go_on() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let lines: Vec<String> = (1..=2001).map(|n| format!("line {n}\n")).collect();
        std::fs::write(root.path().join("long"), lines.concat()).unwrap();
        let grants = grants(root.path());
        let whole = call(&grants, "read_file", json!({"path": "long"})).await;
        assert_eq!(text(&whole), lines[..2000].concat());
        assert_eq!(data(&whole, "nextOffset"), &json!(2001));
        let rest = call(&grants, "read_file", json!({"path": "long", "offset": 2001})).await;
        assert_eq!((text(&rest), data(&rest, "nextOffset")), ("line 2001\n", &json!(null)));
        let some = call(&grants, "read_file", json!({"path": "long", "offset": 3, "limit": 2})).await;
        assert_eq!(text(&some), "line 3\nline 4\n");
        let past = call(&grants, "read_file", json!({"path": "long", "offset": 2002})).await;
        assert_eq!(error(&past), "`long` has 2001 lines; there is no line 2002");

        std::fs::write(root.path().join("wide"), "x".repeat((16 << 10) + 5)).unwrap();
        let wide = call(&grants, "read_file", json!({"path": "wide"})).await;
        assert!(text(&wide).ends_with("… (5 more bytes in this line)\n"), "{:?}", wide.message);
        std::fs::write(root.path().join("empty"), "").unwrap();
        assert_eq!(text(&call(&grants, "read_file", json!({"path": "empty"})).await), "");
        std::fs::write(root.path().join("many"), "0123456789abcde\n".repeat(20_000)).unwrap();
        let many = call(&grants, "read_file", json!({"path": "many", "limit": 100_000})).await;
        assert_eq!(text(&many).len(), 256 << 10);
        assert_eq!(data(&many, "nextOffset"), &json!((256 << 10) / 16 + 1));
    });
}

fn what_is_no_text_is_not_read() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("binary"), b"\x7fELF\0\0").unwrap();
        std::fs::write(root.path().join("latin"), b"gr\xfcn\n").unwrap();
        let grants = grants(root.path());
        let binary = call(&grants, "read_file", json!({"path": "binary"})).await;
        assert_eq!(error(&binary), "`binary` is not a text: it has NUL bytes in it");
        let latin = call(&grants, "read_file", json!({"path": "latin"})).await;
        assert_eq!(text(&latin), "gr\u{fffd}n\n");
        assert!(latin.message.unwrap().contains("UTF-8"));
        let folder = call(&grants, "read_file", json!({"path": "."})).await;
        assert_eq!(error(&folder), "`.` is a folder");
        let missing = call(&grants, "read_file", json!({"path": "x/y"})).await;
        assert_eq!(error(&missing), "`x/y` does not exist");
    });
}

fn hostile_paths_are_denied_by_every_tool() {
    runtime().block_on(async {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let root = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("link")).unwrap();
        symlink(outside.path().join("secret"), root.path().join("file")).unwrap();
        symlink("/proc/self/root", root.path().join("magic")).unwrap();
        let grants = grants(root.path());
        let secret = outside.path().join("secret").display().to_string();
        let paths = ["link/secret", "file", "../x", "magic/etc/hostname", "/etc/hostname", &secret];
        for path in paths {
            for (tool, arguments) in [
                ("read_file", json!({"path": path})),
                ("list_files", json!({"path": path})),
                ("search_files", json!({"path": path, "pattern": "s"})),
                ("edit_file", json!({"path": path, "old": "s", "new": "t"})),
                ("run_command", json!({"command": "true", "cwd": path})),
            ] {
                let result = call(&grants, tool, arguments).await;
                assert!(denial(&result).is_some(), "{tool} {path}: {result:?}");
            }
        }
        for path in ["link/secret", "../x", "magic/tmp/x", "/etc/hostname", &secret, "link/new/file"] {
            let result = call(&grants, "write_file", json!({"path": path, "content": "t"})).await;
            assert!(denial(&result).is_some(), "{path}: {result:?}");
        }
        // A link in the last place is not written through, and not replaced either.
        let link = call(&grants, "write_file", json!({"path": "file", "content": "t"})).await;
        assert_eq!(error(&link), "`file` is a link; name the file that it leads to");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "s");
        let names: Vec<_> = std::fs::read_dir(outside.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    });
}

fn a_folder_is_listed_and_searched_without_its_history() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str, content: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        make(".git/config", "needle");
        make("node_modules/a/index.js", "needle");
        make("target/CACHEDIR.TAG", "");
        make("target/needle.rs", "needle");
        make("src/main.rs", "one\nthe Needle\nneedle needle\n");
        make("src/deep/lib.rs", "nothing");
        make("notes.txt", "needle\n");
        symlink("notes.txt", root.path().join("link")).unwrap();
        let grants = grants(root.path());
        let list = call(&grants, "list_files", json!({})).await;
        assert_eq!(text(&list), ".git/\nlink@\nnode_modules/\nnotes.txt\nsrc/\ntarget/");
        let rust = call(&grants, "list_files", json!({"glob": "*.rs"})).await;
        assert_eq!(text(&rust), "src/deep/lib.rs\nsrc/main.rs");
        let direct = call(&grants, "list_files", json!({"path": "src", "glob": "./*/*.rs"})).await;
        assert_eq!(text(&direct), "src/deep/lib.rs");
        let history = call(&grants, "list_files", json!({"path": ".git"})).await;
        assert_eq!(text(&history), ".git/config");
        let bad = call(&grants, "list_files", json!({"glob": "[a"})).await;
        assert!(error(&bad).contains("cannot be read"), "{bad:?}");

        let found = call(&grants, "search_files", json!({"pattern": "needle"})).await;
        assert_eq!(text(&found), "notes.txt:1: needle\nsrc/main.rs:3: needle needle");
        let any =
            call(&grants, "search_files", json!({"pattern": "NEEDLE", "ignoreCase": true, "glob": "*.rs"}))
                .await;
        assert_eq!(text(&any), "src/main.rs:2: the Needle\nsrc/main.rs:3: needle needle");
        let one = call(&grants, "search_files", json!({"pattern": "needle", "path": "notes.txt"})).await;
        assert_eq!(text(&one), "notes.txt:1: needle");
        let none = call(&grants, "search_files", json!({"pattern": "nee.le"})).await;
        assert_eq!((text(&none), none.message.as_deref()), ("", Some("no line has it")));
    });
}

fn a_listing_stops_at_its_limit() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let make = |number: u32| std::fs::write(root.path().join(format!("{number:05}")), "x\n").unwrap();
        (0..2000).for_each(make);
        let grants = grants(root.path());
        let at = call(&grants, "list_files", json!({})).await;
        assert_eq!((data(&at, "count"), &at.message), (&json!(2000), &None));
        make(2000);
        let past = call(&grants, "list_files", json!({"glob": "**"})).await;
        assert_eq!(data(&past, "count"), &json!(2000));
        assert!(past.message.unwrap().contains("the first 2000"));
        let found = call(&grants, "search_files", json!({"pattern": "x"})).await;
        assert_eq!(data(&found, "count"), &json!(500));
        assert!(found.message.unwrap().contains("there is more"));
    });
}

fn a_file_is_written_at_once_and_keeps_its_permissions() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let grants = grants(root.path());
        let made = call(&grants, "write_file", json!({"path": "a/b/new.txt", "content": "hello"})).await;
        assert_eq!(text(&made), "made `a/b/new.txt`, 5 bytes");
        let script = root.path().join("run.sh");
        std::fs::write(&script, "old").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).unwrap();
        let replaced = call(&grants, "write_file", json!({"path": "run.sh", "content": "new"})).await;
        assert_eq!(data(&replaced, "created"), &json!(false));
        assert_eq!(std::fs::read_to_string(&script).unwrap(), "new");
        assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
        let names: Vec<_> =
            std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing temporary is left: {names:?}");
        let folder = call(&grants, "write_file", json!({"path": "a", "content": ""})).await;
        assert_eq!(error(&folder), "`a` is a folder");
        let at = "x".repeat(8 << 20);
        assert!(call(&grants, "write_file", json!({"path": "big", "content": at})).await.success);
        let past = call(&grants, "write_file", json!({"path": "big", "content": format!("{at}x")})).await;
        assert_eq!(error(&past), "the content has more than 8388608 bytes");
    });
}

fn nothing_is_written_outside_of_the_write_roots() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("out")).unwrap();
        std::fs::write(root.path().join("in.txt"), "a").unwrap();
        let grants = Grants { write_roots: vec![root.path().join("out")], ..grants(root.path()) };
        let written = call(&grants, "write_file", json!({"path": "out/x", "content": "b"})).await;
        assert!(written.success, "{written:?}");
        for (tool, arguments) in [
            ("write_file", json!({"path": "in.txt", "content": "b"})),
            ("write_file", json!({"path": "out/../in.txt", "content": "b"})),
            ("edit_file", json!({"path": "in.txt", "old": "a", "new": "b"})),
        ] {
            let result = call(&grants, tool, arguments).await;
            let denied = denial(&result).unwrap_or_else(|| panic!("{result:?}"));
            assert_eq!((denied.tool.as_str(), denied.mode.word()), (tool, "safe_write"));
        }
        assert_eq!(std::fs::read_to_string(root.path().join("in.txt")).unwrap(), "a");
        assert_eq!(text(&call(&grants, "read_file", json!({"path": "out/x"})).await), "b");
    });
}

fn an_edit_changes_one_place_or_says_why_not() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.rs");
        std::fs::write(&file, "fn a() {}\nfn b() {}\n").unwrap();
        let grants = grants(root.path());
        let edit = |old: &str, new: &str| json!({"path": "a.rs", "old": old, "new": new});
        let done = call(&grants, "edit_file", edit("fn b()", "fn c()")).await;
        assert_eq!(text(&done), "changed `a.rs` in 1 place, first in line 2");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "fn a() {}\nfn c() {}\n");
        let twice = call(&grants, "edit_file", edit("fn ", "pub fn ")).await;
        assert!(error(&twice).contains("2 times (lines 1, 2)"), "{twice:?}");
        let near = call(&grants, "edit_file", edit("fn  a() {}", "")).await;
        assert!(error(&near).contains("line 1, which differs in white space only"), "{near:?}");
        let mut all = edit("fn ", "pub fn ");
        all["all"] = json!(true);
        assert_eq!(data(&call(&grants, "edit_file", all).await, "replaced"), &json!(2));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "pub fn a() {}\npub fn c() {}\n");
    });
}

fn tools_without_a_grant_are_not_listed_and_say_what_would_grant_them() {
    let programs = Programs::new(supervisor(), None);
    let none = Toolbox::builtin(&programs, &Grants::none(), None);
    assert_eq!(none.names(), ["todo_write"]);
    for (tool, grant) in [
        ("read_file", "--read-root"),
        ("edit_file", "--write-root"),
        ("run_command", "--commands"),
        ("web_fetch", "--allow-host"),
        ("run_script", "without a program"),
    ] {
        assert!(none.missing(tool).unwrap().contains(grant), "{tool}");
    }
    assert_eq!(none.missing("nonsense"), None);
    let root = tempfile::tempdir().unwrap();
    let all = Toolbox::builtin(
        &Programs::new(supervisor(), Some(vec!["mustard".into()])),
        &grants(root.path()),
        None,
    );
    let expected = [
        "read_file",
        "list_files",
        "search_files",
        "write_file",
        "edit_file",
        "run_command",
        "todo_write",
        "run_script",
    ];
    assert_eq!(all.names(), expected);
    let only = Toolbox::builtin(
        &programs,
        &grants(root.path()),
        Some(&["read_file".to_owned(), "web_fetch".to_owned()]),
    );
    assert_eq!(only.names(), ["read_file"]);
    assert!(only.missing("write_file").unwrap().contains("toolNames"));
}

fn arguments_that_do_not_fit_are_told_to_the_model() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let grants = grants(root.path());
        let missing = call(&grants, "read_file", json!({})).await;
        assert_eq!(error(&missing), "the arguments of read_file do not fit: it must have `path`");
        let unknown = call(&grants, "read_file", json!({"path": "a", "file": "b"})).await;
        assert!(error(&unknown).contains("has the unknown member `file`; there are: "), "{unknown:?}");
        let wrong = call(&grants, "read_file", json!({"path": "a", "offset": 0})).await;
        assert_eq!(error(&wrong), "the arguments of read_file do not fit: `/offset` must be at least 1");
        assert_eq!(denial(&wrong), None);
    });
}

fn the_list_of_things_to_do_is_kept() {
    runtime().block_on(async {
        let toolbox = Toolbox::builtin(&Programs::new(supervisor(), None), &Grants::none(), None);
        let tool = toolbox.get("todo_write").unwrap();
        let at = place(&Grants::none(), Arc::new(NoDispatch));
        let items = json!({"items": [
            {"content": "look", "status": "completed"}, {"content": "leap", "status": "in_progress"},
        ]});
        let result = tool.invoke(&to_raw_value(&items).unwrap(), &at).await;
        assert_eq!((data(&result, "total"), data(&result, "left")), (&json!(2), &json!(1)));
        assert_eq!(at.todo.items()[1].status, TodoStatus::InProgress);
        let bad = json!({"items": [{"content": "x", "status": "soon"}]});
        let refused = tool.invoke(&to_raw_value(&bad).unwrap(), &at).await;
        assert!(error(&refused).contains("`/items/0/status` must be one of"), "{refused:?}");
        assert_eq!(at.todo.items().len(), 2, "a list that does not fit changes nothing");
    });
}
