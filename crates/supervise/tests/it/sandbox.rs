//! The box from the inside: what a strict child can and cannot do, and whether the report tells the truth.

use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;

use libtest_mimic::Trial;
use outrigger_supervise::launch::{Channels, LaunchError, Launcher, Plan, Status};
use outrigger_supervise::sandbox::{
    Contained, Containment, Enforced, Landlock, LandlockStatus, Layer, Level, Limits, Network, Processes,
    Request, probe,
};

use crate::launch_death::as_nobody;
use crate::launch_kit::{BOTH, alone, launch, plan, read_all, request, shell, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_strict_child_reads_and_writes_only_what_it_was_granted", files),
        trial("a_strict_child_reaches_no_network", no_network),
        trial("a_strict_child_with_unix_sockets_gets_only_those", unix_only),
        trial("a_strict_child_with_network_reaches_it", network),
        trial("a_strict_child_cannot_look_into_others_or_out_of_its_namespace", forbidden_calls),
        trial("a_strict_child_can_do_what_programs_do", ordinary_life),
        trial("a_strict_child_cannot_signal_its_keeper_or_its_host", signals),
        trial("a_strict_child_that_stays_alone_has_threads_and_starts_nothing", stays_alone),
        trial("a_strict_shell_with_pipes_and_interpreters_works", interpreters),
        trial("io_uring_and_foreign_architectures_are_closed", raw_calls),
        trial("basic_and_off_forbid_nothing_of_that", basic),
        trial("the_report_names_every_layer", report),
        trial("granted_paths_that_do_not_exist_are_reported", skipped),
        trial("limits_are_in_force_and_reported", limits),
        trial("a_small_address_space_is_for_the_program_and_does_not_stop_the_launcher", small_address_space),
        trial("a_limit_above_the_hosts_own_is_cut_and_reported", limit_cut),
        trial("the_probe_agrees_with_a_launch", probe_agrees),
        alone("without_landlock_required_refuses_and_auto_falls_back", without_landlock),
        alone("without_seccomp_required_refuses_and_auto_falls_back", without_seccomp),
        alone("without_namespaces_the_strongest_containment_is_a_subreaper", without_namespaces),
        trial("an_unprivileged_host_gets_the_same_box", unprivileged),
    ]
}

/// Runs attempts (see `misbehave`) in a strict box; one line for each.
async fn attempt(request: Request, attempts: &[String]) -> Vec<String> {
    let words: Vec<&str> = ["try"].into_iter().chain(attempts.iter().map(String::as_str)).collect();
    let mut launched = launch(Plan { sandbox: request, ..plan(&words) }).await;
    let said = read_all(launched.stdout.take()).await;
    assert_eq!(launched.control.wait().await.status, Status::Code(0));
    said.lines().map(str::to_owned).collect()
}

/// Asserts the outcome of every attempt: `("read:/x", "EACCES")`.
async fn expect(request: Request, expected: &[(&str, &str)]) {
    let attempts: Vec<String> = expected.iter().map(|(attempt, _)| (*attempt).to_owned()).collect();
    let said = attempt(request, &attempts).await;
    let wanted: Vec<String> =
        expected.iter().map(|(attempt, outcome)| format!("{attempt} {outcome}")).collect();
    assert_eq!(said, wanted);
}

fn strict() -> Request {
    Request::new(Level::Strict, Limits::as_the_host())
}

/// A directory with `readable/file`, `writable/` and `secret`, outside of what a box grants by itself.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("readable")).expect("a directory");
        std::fs::create_dir(directory.path().join("writable")).expect("a directory");
        std::fs::write(directory.path().join("readable/file"), "r").expect("a file");
        std::fs::write(directory.path().join("secret"), "s").expect("a file");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

async fn files() {
    for containment in BOTH {
        let place = Place::new();
        let request = Request {
            containment,
            read: vec![place.path("readable")],
            write: vec![place.path("writable")],
            ..strict()
        };
        let at = |verb: &str, name: &str| format!("{verb}:{}", place.path(name).display());
        expect(
            request,
            &[
                (&at("read", "readable/file"), "ok"),
                (&at("list", "readable"), "ok"),
                (&at("write", "readable/file"), "EACCES"),
                (&at("write", "readable/new"), "EACCES"),
                (&at("write", "writable/new"), "ok"),
                (&at("read", "writable/new"), "ok"),
                (&at("mkdir", "writable/deeper"), "ok"),
                (&at("read", "secret"), "EACCES"),
                (&at("write", "secret"), "EACCES"),
                (&at("write", "elsewhere"), "EACCES"),
                ("read:/etc/shadow", "EACCES"),
                ("list:/etc", "EACCES"),
                ("list:/", "EACCES"),
                ("list:/root", "EACCES"),
                ("list:/tmp", "EACCES"),
                ("read:/etc/passwd", "ok"),
                ("write:/etc/passwd", "EACCES"),
                ("list:/usr/lib", "ok"),
                ("write:/dev/null", "ok"),
                ("read:/proc/self/status", "ok"),
            ],
        )
        .await;
        assert_eq!(std::fs::read_to_string(place.path("secret")).expect("the secret"), "s");
    }
}

/// Listeners of all kinds on this host.
struct Servers {
    tcp: TcpListener,
    udp: UdpSocket,
    _unix: std::os::unix::net::UnixListener,
    place: Place,
}

impl Servers {
    fn new() -> Self {
        let place = Place::new();
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").expect("a listener"),
            udp: UdpSocket::bind("127.0.0.1:0").expect("a socket"),
            _unix: std::os::unix::net::UnixListener::bind(place.path("socket")).expect("a listener"),
            place,
        }
    }

    fn attempts(&self) -> [String; 5] {
        [
            format!("connect:{}", self.tcp.local_addr().expect("an address")),
            format!("udp:{}", self.udp.local_addr().expect("an address")),
            "netlink".to_owned(),
            format!("unix:{}", self.place.path("socket").display()),
            "unix-pair".to_owned(),
        ]
    }

    async fn expect(&self, network: Network, outcomes: [&str; 5]) {
        let attempts = self.attempts();
        let expected: Vec<(&str, &str)> = attempts.iter().map(String::as_str).zip(outcomes).collect();
        expect(Request { network, ..strict() }, &expected).await;
    }
}

async fn no_network() {
    Servers::new().expect(Network::Deny, ["EPERM", "EPERM", "EPERM", "EPERM", "ok"]).await;
}

async fn unix_only() {
    Servers::new().expect(Network::UnixOnly, ["EPERM", "EPERM", "EPERM", "ok", "ok"]).await;
}

async fn network() {
    Servers::new().expect(Network::Allow, ["ok", "ok", "ok", "ok", "ok"]).await;
}

async fn forbidden_calls() {
    let place = Place::new();
    let mount = format!("mount:{}", place.path("writable").display());
    let request = Request { write: vec![place.path("writable")], ..strict() };
    expect(
        request,
        &[("ptrace", "EPERM"), ("unshare", "EPERM"), (&mount, "EPERM"), ("chroot:/usr", "EPERM")],
    )
    .await;
}

async fn ordinary_life() {
    expect(strict(), &[("thread", "ok"), ("fork", "ok"), ("execute:/bin/sh", "ok"), ("files:100", "ok")])
        .await;
}

async fn signals() {
    // In a subreaper's tree everybody has a number that can be named; only Landlock stands between them.
    let host = format!("signal:{}", std::process::id());
    let request = Request { containment: Containment::Subreaper, ..strict() };
    expect(request.clone(), &[(&host, "EPERM")]).await;
    let script = "kill -0 $PPID 2>/dev/null && echo reached || echo out of reach";
    let mut launched = launch(Plan { sandbox: request, ..shell(script) }).await;
    assert_eq!(read_all(launched.stdout.take()).await, "out of reach\n");
}

async fn stays_alone() {
    for containment in BOTH {
        let alone = Request { containment, processes: Processes::One, ..strict() };
        let (attempts, outcomes) = (["thread", "fork", "execute:/bin/sh"], ["ok", "EPERM", "EPERM"]);
        let expected: Vec<_> = attempts.into_iter().zip(outcomes).collect();
        expect(alone.clone(), &expected).await;
        // It gets its own name, arguments and environment as if nothing were between; and it may become another program.
        let script = "echo $0 $1 $OF_MINE; exec cat /proc/self/comm";
        let mut plan = Plan { sandbox: alone, ..shell(script) };
        plan.args.extend(["zero".into(), "one".into()]);
        plan.env.push(("OF_MINE".into(), "kept".into()));
        let mut launched = launch(plan).await;
        assert_eq!(launched.enforced.processes, Processes::One);
        assert_eq!(read_all(launched.stdout.take()).await, "zero one kept\ncat\n");
        assert_eq!(launched.control.wait().await.status, Status::Code(0));
    }
}

async fn interpreters() {
    for containment in BOTH {
        let script = "echo one two three | tr ' ' '\\n' | sort | head -n 1; ls /usr >/dev/null && date +%Y >/dev/null && echo fine";
        let mut launched =
            launch(Plan { sandbox: Request { containment, ..strict() }, ..shell(script) }).await;
        assert_eq!(read_all(launched.stdout.take()).await, "one\nfine\n");
        assert_eq!(launched.control.wait().await.status, Status::Code(0));
    }
}

async fn raw_calls() {
    // Perl makes any system call by number.
    let perl = |code: &str| Plan {
        program: "/usr/bin/perl".into(),
        args: vec!["-e".into(), code.into()],
        sandbox: strict(),
        ..plan(&[])
    };
    let errno_of = |call: &str| format!("$r = syscall({call}); print $r == -1 ? $!+0 : 'ok'");
    for (call, errno) in
        [("425, 1, 0", "1"), ("435, 0, 0", "38"), ("135, 0x40000", "1"), ("135, 0xffffffff", "ok")]
    {
        let mut launched = launch(perl(&errno_of(call))).await;
        assert_eq!(read_all(launched.stdout.take()).await, errno, "syscall({call})");
    }
    // 39 is getpid; with the x32 bit it is the same call through a door without a guard.
    let mut launched = launch(perl(&errno_of("0x40000000 + 39"))).await;
    assert_eq!(read_all(launched.stdout.take()).await, "");
    assert_eq!(launched.control.wait().await.status, Status::Signal(31));
}

async fn basic() {
    let servers = Servers::new();
    let attempts = servers.attempts();
    let secret = format!("read:{}", servers.place.path("secret").display());
    for level in [Level::Off, Level::Basic] {
        let network = attempts.iter().map(|attempt| (attempt.as_str(), "ok"));
        let expected: Vec<_> = network.chain([(secret.as_str(), "ok"), ("list:/", "ok")]).collect();
        expect(request(level, Containment::Strongest), &expected).await;
    }
}

async fn report() {
    let enforced = |level: Level| async move { launch(plan_at(level)).await.enforced };
    let contained = Contained::PidNamespace {
        user_namespace: !rustix::process::geteuid().is_root(),
        proc_mounted: Layer::Applied,
    };
    let off = Enforced {
        level: Level::Off,
        containment: contained,
        no_new_privs: Layer::NotRequested,
        landlock: Landlock::NotRequested,
        seccomp: Layer::NotRequested,
        network: Network::Allow,
        processes: Processes::Many,
        limits: Limits::as_the_host(),
        skipped_paths: Vec::new(),
    };
    assert_eq!(enforced(Level::Off).await, off);
    let no_core = Limits { core_bytes: Some(0), ..Limits::as_the_host() };
    let basic = Enforced { level: Level::Basic, no_new_privs: Layer::Applied, limits: no_core, ..off };
    assert_eq!(enforced(Level::Basic).await, basic);
    for level in [Level::Strict, Level::Auto, Level::Required] {
        let strict = enforced(level).await;
        let Landlock::Applied { abi, status } = strict.landlock else { panic!("{strict:?}") };
        // Interface 6 brought the last of what is asked for.
        assert_eq!(status == LandlockStatus::Full, abi >= 6);
        let expected = Enforced {
            level: Level::Strict,
            landlock: strict.landlock.clone(),
            seccomp: Layer::Applied,
            network: Network::Deny,
            ..basic.clone()
        };
        assert_eq!(strict, expected);
    }
}

fn plan_at(level: Level) -> Plan {
    Plan { sandbox: request(level, Containment::Strongest), ..plan(&["exit", "0"]) }
}

async fn skipped() {
    let place = Place::new();
    let (read, write) = (vec![place.path("readable"), place.path("absent")], vec![place.path("gone")]);
    let request = Request { read, write, ..strict() };
    let launched = launch(Plan { sandbox: request, ..plan(&["exit", "0"]) }).await;
    assert_eq!(launched.enforced.skipped_paths, [place.path("absent"), place.path("gone")]);
}

async fn limits() {
    for containment in BOTH {
        let limits = Limits {
            open_files: Some(40),
            file_size_bytes: Some(1000),
            cpu_seconds: Some(1),
            address_space_bytes: Some(256 * 1024 * 1024),
            processes: Some(4000),
            core_bytes: None,
        };
        let sandbox = Request { containment, ..Request::new(Level::Basic, limits) };
        let place = Place::new();
        let run = |script: String| {
            let plan = Plan { sandbox: sandbox.clone(), ..shell(&script) };
            async move {
                let mut launched = launch(plan).await;
                let said = read_all(launched.stdout.take()).await;
                (said, launched.control.wait().await.status, launched.enforced.limits)
            }
        };
        let (said, _, enforced) =
            run("ulimit -n; ulimit -t; ulimit -v; ulimit -c; ulimit -Hn".to_owned()).await;
        assert_eq!(said, "40\n1\n262144\n0\n40\n");
        assert_eq!(enforced, Limits { core_bytes: Some(0), ..limits });

        let file = place.path("big");
        let (_, status, _) = run(format!("exec head -c 2000 /dev/zero > {}", file.display())).await;
        assert_eq!(status, Status::Signal(25), "SIGXFSZ");
        assert_eq!(std::fs::metadata(&file).expect("the file").len(), 1000);

        let (_, status, _) = run("while :; do :; done".to_owned()).await;
        assert!(
            matches!(status, Status::Signal(24 | 9)),
            "SIGXCPU, or SIGKILL where soft and hard limit meet: {status:?}"
        );
    }
}

async fn small_address_space() {
    for containment in BOTH {
        for level in [Level::Basic, Level::Strict] {
            let limits = Limits { address_space_bytes: Some(64 * 1024 * 1024), ..Limits::as_the_host() };
            let sandbox = Request { containment, ..Request::new(level, limits) };
            // Leaves an orphan behind, so that the keeper has to look around under its own limit.
            let mut launched = launch(Plan { sandbox, ..shell("(sleep 1000 >/dev/null &) ; exit 4") }).await;
            assert_eq!(read_all(launched.stdout.take()).await, "");
            let exit = launched.control.wait().await;
            assert_eq!((exit.status, exit.leftovers), (Status::Code(4), 1));
        }
    }
}

async fn limit_cut() {
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.expect("a hard limit");
    for (asked, got) in [(hard, hard), (hard + 1, hard)] {
        let limits = Limits { open_files: Some(asked), ..Limits::as_the_host() };
        let launched =
            launch(Plan { sandbox: Request::new(Level::Basic, limits), ..plan(&["exit", "0"]) }).await;
        assert_eq!(launched.enforced.limits.open_files, Some(got));
    }
}

async fn probe_agrees() {
    let found = probe(&Launcher::current_exe()).await.expect("a probe");
    let launched = launch(plan_at(Level::Auto)).await;
    assert_eq!(
        (found.auto_level, &found.strongest),
        (launched.enforced.level, &launched.enforced.containment)
    );
    assert_eq!(found.landlock.available, matches!(launched.enforced.landlock, Landlock::Applied { .. }));
    assert_eq!(found.seccomp.available, launched.enforced.seccomp == Layer::Applied);
    assert_eq!(
        found.pid_namespace.available,
        matches!(launched.enforced.containment, Contained::PidNamespace { .. })
    );
    assert!(found.subreaper.available && found.pidfd.available && found.limits.available);
    let text = serde_json::to_string(&found).expect("JSON");
    assert_eq!(
        serde_json::from_str::<outrigger_supervise::sandbox::Capabilities>(&text).expect("JSON"),
        found
    );
}

/// Takes system calls away from this process and what it starts, as a container's profile does.
fn take_away(calls: &[i64], errno: i32) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let denied = SeccompAction::Errno(errno.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().expect("a known architecture");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).expect("a filter");
    let program = BpfProgram::try_from(filter).expect("a program");
    seccompiler::apply_filter(&program).expect("an outer filter");
}

async fn refused(level: Level) -> LaunchError {
    Launcher::current_exe().launch(plan_at(level), Channels::piped()).await.map(drop).expect_err("a refusal")
}

async fn without_landlock() {
    use nix::libc;
    take_away(
        &[libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self],
        libc::ENOSYS,
    );
    for level in [Level::Required, Level::Strict] {
        let error = refused(level).await;
        assert_eq!((error.code(), error.is_permanent()), ("sandbox", true));
        assert!(error.to_string().contains("landlock is missing"), "{error}");
    }
    let launched = launch(plan_at(Level::Auto)).await;
    assert_eq!(launched.enforced.level, Level::Basic);
    assert!(matches!(launched.enforced.landlock, Landlock::Missing { .. }));
    assert_eq!(launched.enforced.seccomp, Layer::Applied, "what is to be had is taken");
    let found = probe(&Launcher::current_exe()).await.expect("a probe");
    assert!(!found.landlock.available && found.landlock.reason.is_some() && found.auto_level == Level::Basic);
}

async fn without_seccomp() {
    take_away(&[nix::libc::SYS_seccomp], nix::libc::EPERM);
    let error = refused(Level::Required).await;
    assert!(error.to_string().contains("seccomp is missing"), "{error}");
    let launched = launch(plan_at(Level::Auto)).await;
    assert_eq!((launched.enforced.level, launched.enforced.network), (Level::Basic, Network::Allow));
    assert!(matches!(launched.enforced.landlock, Landlock::Applied { .. }));
}

async fn without_namespaces() {
    take_away(&[nix::libc::SYS_unshare], nix::libc::EPERM);
    let launched = launch(plan_at(Level::Strict)).await;
    let Contained::Subreaper { reason } = &launched.enforced.containment else {
        panic!("{:?}", launched.enforced)
    };
    assert!(reason.contains("unshare"), "{reason}");
    let sandbox = request(Level::Basic, Containment::PidNamespace);
    let error =
        Launcher::current_exe().launch(Plan { sandbox, ..plan(&["exit", "0"]) }, Channels::piped()).await;
    let error = error.map(drop).expect_err("a refusal");
    assert!(error.to_string().contains("pid_namespace is missing"), "{error}");
    let found = probe(&Launcher::current_exe()).await.expect("a probe");
    assert!(!found.pid_namespace.available && !found.user_namespace.available && found.subreaper.available);
}

async fn unprivileged() {
    let place = tempfile::tempdir().expect("a directory");
    let names = [
        "a_strict_child_reads_and_writes_only_what_it_was_granted",
        "a_strict_child_reaches_no_network",
        "a_strict_child_cannot_look_into_others_or_out_of_its_namespace",
        "the_report_names_every_layer",
        "the_probe_agrees_with_a_launch",
        "exit_codes_and_signals_pass_through_exactly",
        "the_program_starts_with_a_clean_slate",
        "a_child_that_ignores_sigterm_is_killed_with_its_grandchildren",
    ];
    for name in names {
        let output = as_nobody(place.path()).args(["--exact", name]).output().expect("the tests as nobody");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
}
