//! `run_command` in its box and `web_fetch` over real sockets: what they reach, and what they do not.

use std::path::Path;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use outrigger_steerable::tools::{Commands, Grants, Programs, Toolbox, denial};
use serde_json::json;

use crate::tools_kit::{Web, call, data, error, grants, hosts, page, runtime, status, supervisor, text};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_command_gives_its_output_and_how_it_ended,
        a_command_cannot_write_outside_or_reach_the_network,
        a_command_that_takes_too_long_is_killed_with_everything_it_started,
        a_command_whose_call_is_dropped_is_killed,
        a_flood_of_output_is_cut_in_the_middle,
        a_page_of_an_allowed_host_is_fetched_as_text,
        a_redirect_is_judged_like_the_first_address,
        a_page_is_read_up_to_its_limit,
    ]
}

fn a_command_gives_its_output_and_how_it_ended() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sub")).unwrap();
        let grants = grants(root.path());
        let shell =
            call(&grants, "run_command", json!({"command": "echo out; echo err >&2; pwd; exit 3"})).await;
        assert_eq!(error(&shell), "exit code 3");
        assert_eq!(data(&shell, "exitCode"), &json!(3));
        let real = std::fs::canonicalize(root.path()).unwrap();
        assert_eq!(text(&shell), format!("out\nerr\n{}\n", real.display()));
        let direct = json!({"command": "cat", "args": ["-", "$HOME"], "stdin": "from us", "cwd": "sub"});
        let direct = call(&grants, "run_command", direct).await;
        assert!(text(&direct).starts_with("from us"), "{direct:?}");
        assert!(text(&direct).contains("$HOME"), "no shell was asked: {direct:?}");
        let killed = call(&grants, "run_command", json!({"command": "kill -9 $$"})).await;
        assert_eq!(error(&killed), "it was ended by signal SIGKILL");
        let missing = call(&grants, "run_command", json!({"command": "/no/such/program", "args": []})).await;
        assert!(error(&missing).starts_with("it could not be started"), "{missing:?}");
        let written = call(&grants, "run_command", json!({"command": "echo x > made && cat made"})).await;
        assert_eq!((written.success, text(&written)), (true, "x\n"), "{written:?}");
        let scratch = call(
            &grants,
            "run_command",
            json!({"command": "cd $TMPDIR && echo y > t && cat t && test $HOME = $TMPDIR"}),
        )
        .await;
        assert_eq!((scratch.success, text(&scratch)), (true, "y\n"), "{scratch:?}");
        let gone = call(&grants, "run_command", json!({"command": "echo $TMPDIR"})).await;
        let folder = Path::new(text(&gone).trim_end());
        assert!(folder.is_absolute() && !folder.exists(), "{gone:?}");
    });
}

fn a_command_cannot_write_outside_or_reach_the_network() {
    runtime().block_on(async {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("readable"), "r").unwrap();
        let web = Web::start(|_| page("text/plain", "reached")).await;
        let read_only = Grants { write_roots: Vec::new(), ..grants(root.path()) };
        let run = async |grants: &Grants, line: String| {
            call(grants, "run_command", json!({"command": line, "timeoutMs": 20_000})).await
        };
        let write = run(&grants(root.path()), format!("echo x > {}/new", outside.path().display())).await;
        assert!(!write.success, "{write:?}");
        assert!(!outside.path().join("new").exists());
        let read = run(&grants(root.path()), format!("cat {}/secret", outside.path().display())).await;
        assert!(!read.success && !text(&read).contains("s3cret"), "{read:?}");
        let inside = run(&read_only, "cat readable && echo x > readable".to_owned()).await;
        assert!(!inside.success && text(&inside).starts_with('r'), "{inside:?}");
        assert_eq!(std::fs::read_to_string(root.path().join("readable")).unwrap(), "r");
        let reach =
            format!("python3 -c \"import socket; socket.create_connection(('127.0.0.1', {}), 5)\"", web.port);
        let reached = run(&grants(root.path()), reach).await;
        assert!(!reached.success, "{reached:?}");
        assert!(web.seen().is_empty());
        let denied = Grants { commands: Commands::Deny, ..grants(root.path()) };
        let toolbox = Toolbox::builtin(&Programs::new(supervisor(), None), &denied, None);
        assert!(toolbox.missing("run_command").unwrap().contains("--commands"));
    });
}

fn a_command_that_takes_too_long_is_killed_with_everything_it_started() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let line = "echo begun; (sleep 600; echo x > late) & trap '' TERM; sleep 600";
        let result =
            call(&grants(root.path()), "run_command", json!({"command": line, "timeoutMs": 1500})).await;
        assert_eq!(error(&result), "it was stopped, because it took longer than 1500 ms");
        assert_eq!(text(&result), "begun\n");
        assert!(began.elapsed() < Duration::from_secs(60));
        assert!(!root.path().join("late").exists());
    });
}

/// Waits until a file is there.
async fn appears(path: &Path) {
    let until = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < until, "{} never appeared", path.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn a_command_whose_call_is_dropped_is_killed() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let grants = grants(root.path());
        let begun = root.path().join("begun");
        // Whoever holds the lock lives, also the child of the shell: the lock is free when all of them are gone.
        let running =
            call(&grants, "run_command", json!({"command": "exec 9>lock; flock 9; touch begun; sleep 600"}));
        tokio::select! {
            result = running => panic!("{result:?}"),
            () = appears(&begun) => {}
        }
        let lock = std::fs::File::open(root.path().join("lock")).unwrap();
        let free = tokio::task::spawn_blocking(move || lock.lock().unwrap());
        tokio::time::timeout(Duration::from_secs(60), free)
            .await
            .expect("the command outlived its call")
            .unwrap();
    });
}

fn a_flood_of_output_is_cut_in_the_middle() {
    runtime().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let line = "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last";
        let result = call(&grants(root.path()), "run_command", json!({"command": line})).await;
        assert!(result.success, "{:?}", result.error);
        assert!(text(&result).starts_with("first\n") && text(&result).ends_with("\nlast\n"));
        assert!(text(&result).len() < 70_000, "{}", text(&result).len());
        let kept = text(&result).matches('x').count() as u64;
        assert_eq!(data(&result, "cutBytes").as_u64().unwrap() + kept, 20_000_000);
    });
}

fn a_page_of_an_allowed_host_is_fetched_as_text() {
    runtime().block_on(async {
        let web = Web::start(|seen| match seen.path.as_str() {
            "/page" => {
                page("text/html; charset=utf-8", "<title>T</title><h1>Hi</h1><script>x</script><p>a &amp; b")
            }
            "/data" => page("application/json", "{\"a\":1}"),
            "/image" => page("image/png", "\u{89}PNG"),
            _ => status("404 Not Found", ""),
        })
        .await;
        let allowed = hosts(&[&format!("127.0.0.1:{}", web.port)]);
        let at = |path: &str| json!({"url": format!("http://127.0.0.1:{}{path}", web.port)});
        let html = call(&allowed, "web_fetch", at("/page")).await;
        assert_eq!((text(&html), data(&html, "title")), ("# Hi\n\na & b", &json!("T")), "{html:?}");
        assert_eq!(text(&call(&allowed, "web_fetch", at("/data")).await), "{\"a\":1}");
        assert!(
            error(&call(&allowed, "web_fetch", at("/image")).await).contains("image/png, which is no text")
        );
        assert_eq!(error(&call(&allowed, "web_fetch", at("/none")).await), "the server answered 404");

        let before = web.seen().len();
        let local = hosts(&["localhost"]);
        let named = json!({"url": format!("http://localhost:{}/data", web.port)});
        assert_eq!(text(&call(&local, "web_fetch", named.clone()).await), "{\"a\":1}");
        assert_eq!(web.seen().len(), before + 1);
        // A wildcard allows names, and not what they lead to on this machine.
        for (grants, arguments) in [
            (hosts(&["*"]), named),
            (hosts(&["*"]), at("/data")),
            (hosts(&["localhost"]), at("/data")),
            (hosts(&["127.0.0.1:1"]), at("/data")),
            (hosts(&["example.org"]), json!({"url": "ftp://example.org/"})),
        ] {
            let result = call(&grants, "web_fetch", arguments.clone()).await;
            assert!(denial(&result).is_some(), "{arguments}: {result:?}");
        }
        assert_eq!(web.seen().len(), before + 1, "nothing was connected to");
    });
}

fn a_redirect_is_judged_like_the_first_address() {
    runtime().block_on(async {
        let inner = Web::start(|_| page("text/plain", "private")).await;
        let port = inner.port;
        let outer = Web::start(move |seen| match seen.path.as_str() {
            "/in" => status("302 Found", &format!("location: http://127.0.0.1:{port}/\r\n")),
            "/file" => status("302 Found", "location: file:///etc/passwd\r\n"),
            "/cloud" => status("307 Temporary Redirect", "location: http://169.254.169.254/latest\r\n"),
            "/circle" => status("302 Found", "location: /circle\r\n"),
            "/on" => status("301 Moved Permanently", "location: end\r\n"),
            _ => page("text/plain", "the end"),
        })
        .await;
        let allowed = hosts(&[&format!("127.0.0.1:{}", outer.port), "*.example.org"]);
        let at = |path: &str| json!({"url": format!("http://127.0.0.1:{}{path}", outer.port)});
        for path in ["/in", "/file", "/cloud"] {
            let result = call(&allowed, "web_fetch", at(path)).await;
            let denied = denial(&result).unwrap_or_else(|| panic!("{path}: {result:?}"));
            assert!(denied.reason.contains("sends us on"), "{denied:?}");
        }
        assert!(inner.seen().is_empty());
        let circle = call(&allowed, "web_fetch", at("/circle")).await;
        assert!(error(&circle).contains("more than 10 times"), "{circle:?}");
        let end = call(&allowed, "web_fetch", at("/on")).await;
        assert_eq!((text(&end), data(&end, "url").as_str().unwrap().ends_with("/end")), ("the end", true));
    });
}

fn a_page_is_read_up_to_its_limit() {
    runtime().block_on(async {
        let web = Web::start(|_| page("text/plain", &"x".repeat(1000))).await;
        let allowed = hosts(&["127.0.0.1"]);
        let at = |limit: u64| json!({"url": format!("http://127.0.0.1:{}/", web.port), "maxBytes": limit});
        let whole = call(&allowed, "web_fetch", at(1000)).await;
        assert_eq!((text(&whole).len(), data(&whole, "cut")), (1000, &json!(null)));
        let cut = call(&allowed, "web_fetch", at(999)).await;
        assert_eq!((text(&cut).len(), data(&cut, "cut")), (999, &json!(true)));
        let asked = &web.seen()[0];
        assert_eq!(asked.method, "GET");
        assert!(asked.header("user-agent").unwrap().starts_with("steerable-sidecar/"), "{}", asked.head);
        assert_eq!(asked.body, "");
    });
}
