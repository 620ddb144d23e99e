//! What can be asked of `outrigger ext`, as types.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use outrigger_sep::host::life::platform::Script;

#[derive(Subcommand)]
#[command(after_help = "\
An extension is a folder with a manifest and a program. `outrigger ext up` is the host: it finds \
extensions, starts them in their box and gates every call they make. \
The other commands speak to the host that is up; those that only look or decide (list, show, validate, enable, disable, reset, grant, revoke, logs, audit) also work without one.

Examples:
  outrigger ext new org.example.hello                 a complete extension to begin with
  outrigger ext validate ./my-extension
  outrigger ext trust org.example.hello               I have read it: it may do what I grant
  outrigger ext up                                    the host, until Ctrl-C
  outrigger ext list
  outrigger ext grant org.example.hello messages.read events.subscribe
  outrigger ext call org.example.hello stats reset
  outrigger ext logs org.example.hello --follow
  outrigger ext audit verify")]
pub(crate) enum ExtCommand {
    /// Be the host: find extensions, start them, gate their calls, until Ctrl-C.
    Up(Box<UpArgs>),
    /// Stop the host that is up, and all its extensions in good order.
    Down(Place),
    /// All extensions, and where each is in its life.
    List(Place),
    /// Everything about one extension: findings, trust, permissions with reasons, limits, box, last exits.
    Show(One),
    /// Say everything that is wrong with manifests, with pointers and suggestions.
    Validate(ValidateArgs),
    /// Write a complete extension to begin with.
    New(NewArgs),
    /// Vouch for an extension as it is now: its id and the digest of its files go into the policy.
    Trust(One),
    /// Sign an extension with an Ed25519 key, or make such a key.
    Sign(SignArgs),
    /// Start an extension.
    Start(One),
    /// Stop an extension; it stays enabled.
    Stop(One),
    /// Stop an extension and start it again.
    Restart(One),
    /// Let an extension run again, and say yes to what it declares if it was never asked about.
    Enable(One),
    /// Switch an extension off, also for the next host.
    Disable(One),
    /// Forget the crashes of an extension that was switched off for them.
    Reset(One),
    /// Allow an extension some of what it declares. Acts on its next call.
    Grant(Permissions),
    /// Take permissions back. Acts on its next call.
    Revoke(Permissions),
    /// Invoke an action of a panel, as a click would.
    Call(CallArgs),
    /// What an extension printed, and what the host has to say about it.
    Logs(LogsArgs),
    /// The panels of all extensions, rendered.
    Ui(UiArgs),
    /// The numbers of all extensions.
    Metrics(Place),
    /// The last frames of an extension, if the host traces.
    Trace(One),
    /// Look for new, changed and vanished extensions now.
    Rescan(Place),
    /// What happens to extensions, as it happens.
    Watch(Place),
    /// The address of the host's own node, to be written to.
    Node(Place),
    /// Messages of the host's own node: send one, list them.
    Message {
        #[command(subcommand)]
        command: MessageCommand,
    },
    /// The people that the host's node knows.
    Contacts {
        #[command(subcommand)]
        command: ContactsCommand,
    },
    /// The log of decisions.
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// The box that untrusted extensions get.
    Sandbox {
        #[command(subcommand)]
        command: SandboxCommand,
    },
    /// The effective policy of the host, as a file that could be given to `--policy`.
    Policy(Place),
}

/// Which host is meant.
#[derive(Args, Clone)]
pub(crate) struct Place {
    /// The folder of the host: policy.toml, extensions, keys and state are in it [default: $XDG_DATA_HOME/outrigger/ext].
    #[arg(long, value_name = "DIR", env = "OUTRIGGER_EXT_HOME")]
    pub(crate) home: Option<PathBuf>,

    /// The policy of the host [default: policy.toml in its folder, if it is there].
    #[arg(long, value_name = "FILE", env = "OUTRIGGER_EXT_POLICY")]
    pub(crate) policy: Option<PathBuf>,

    /// A folder of extensions instead of those of the policy; may be given more than once.
    #[arg(long = "extensions", value_name = "DIR")]
    pub(crate) extensions: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct One {
    /// The extension.
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
#[command(after_help = "\
Ctrl-C stops every extension in good order, a second one at once. Nothing of them outlives the host.

Examples:
  outrigger ext up
  outrigger ext up --home ./host
  outrigger ext up --json | jq -c 'select(.event == \"changed\")'
  outrigger ext up --name alice --mesh ./mesh.sqlite
  outrigger ext up --backend lxmf
  outrigger ext up --phone 't=0 fg; t=20 bg; t=40 fg'")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) place: Place,

    /// The network that carries messages.
    #[arg(long, value_enum, default_value_t = Backend::Embedded)]
    pub(crate) backend: Backend,

    /// The database of the embedded network; hosts that share it can write to each other [default: mesh.sqlite in the folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) mesh: Option<PathBuf>,

    /// What this node is called [default: the user's name].
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// With --backend lxmf: the folder where `pip install --target` put lxmf and rns [default: wherever python3 finds them].
    #[arg(long, value_name = "DIR", env = "OUTRIGGER_PY_LXMF")]
    pub(crate) packages: Option<PathBuf>,

    /// With --backend lxmf: take connections on this loopback port.
    #[arg(long, value_name = "PORT")]
    pub(crate) listen: Option<u16>,

    /// With --backend lxmf: connect to the node on this loopback port.
    #[arg(long, value_name = "PORT")]
    pub(crate) connect: Option<u16>,

    /// Keep the last frames of every extension for `ext trace`, without their content.
    #[arg(long)]
    pub(crate) trace: bool,

    /// Begin with no extension running; each is started when it is asked for, or by an event that it wants to hear about.
    #[arg(long)]
    pub(crate) lazy: bool,

    /// Be a phone, for trying things out: the android profile, with a script for what the user and the system do, such as
    /// 't=0 fg; t=5 bg; t=9 fg'. Words: fg, bg, trim=moderate|low|critical, freeze, thaw, reclaim.
    #[arg(long, value_name = "SCRIPT")]
    pub(crate) phone: Option<Script>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// A network in a SQLite file, for the hosts of one machine.
    Embedded,
    /// A real Reticulum node with LXMF, in a Python process.
    Lxmf,
}

#[derive(Args)]
#[command(after_help = "\
Exit status: 0 when every manifest could run here, 1 when one has an error or is blocked.

Examples:
  outrigger ext validate ./my-extension
  outrigger ext validate extensions/*/sep_manifest.json --json")]
pub(crate) struct ValidateArgs {
    /// Folders of extensions, or manifests.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  outrigger ext new org.example.hello
  outrigger ext new org.example.hello --in ./extensions --language rust")]
pub(crate) struct NewArgs {
    /// The id of the new extension, such as org.example.hello.
    pub(crate) id: String,

    /// The folder of extensions it is put into [default: the host's first].
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,

    /// What it is written in.
    #[arg(long, value_enum, default_value_t = Language::Python)]
    pub(crate) language: Language,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Source that can be changed at once, with the kit beside it.
    Python,
    /// The reference extension as a program.
    Rust,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  outrigger ext sign --new-key release.key            makes release.key and release.pub
  outrigger ext sign ./my-extension --key release.key --key-id release")]
pub(crate) struct SignArgs {
    /// The extension's folder; its manifest gets the signature.
    #[arg(required_unless_present = "new_key")]
    pub(crate) dir: Option<PathBuf>,

    /// The private key.
    #[arg(long, value_name = "FILE", requires = "dir")]
    pub(crate) key: Option<PathBuf>,

    /// The name under which hosts know the key.
    #[arg(long, value_name = "NAME", requires = "key")]
    pub(crate) key_id: Option<String>,

    /// Make a key: FILE, and beside it the public half as FILE with the ending .pub.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dir", "key", "key_id"])]
    pub(crate) new_key: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Permissions {
    /// The extension.
    pub(crate) id: String,

    /// Permissions such as messages.read; none means all that it declares.
    pub(crate) permissions: Vec<String>,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
#[command(after_help = "Examples:
  outrigger ext call org.example.hello stats reset
  outrigger ext call org.example.hello stats set-reply --input 'back at nine'")]
pub(crate) struct CallArgs {
    /// The extension.
    pub(crate) id: String,
    /// The panel.
    pub(crate) panel: String,
    /// The action.
    pub(crate) action: String,

    /// What is typed or chosen, for an action that asks.
    #[arg(long)]
    pub(crate) input: Option<String>,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
pub(crate) struct LogsArgs {
    /// The extension.
    pub(crate) id: String,

    /// How many of the last lines.
    #[arg(long, short = 'n', default_value_t = 50)]
    pub(crate) lines: usize,

    /// Go on with what comes.
    #[arg(long, short)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
pub(crate) struct UiArgs {
    /// And the last notices.
    #[arg(long)]
    pub(crate) notices: bool,

    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Subcommand)]
pub(crate) enum MessageCommand {
    /// Send a message.
    Send {
        /// The address: 32 hexadecimal digits.
        to: String,
        /// What it says.
        text: String,
        #[command(flatten)]
        place: Place,
    },
    /// The last messages.
    List {
        /// How many.
        #[arg(long, short = 'n', default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Subcommand)]
pub(crate) enum ContactsCommand {
    /// Everybody.
    List(Place),
    /// Know somebody by a name.
    Add {
        /// What we call them.
        name: String,
        /// Their address: 32 hexadecimal digits.
        address: String,
        #[command(flatten)]
        place: Place,
    },
    /// Forget somebody.
    Remove {
        /// The number that the list shows.
        number: u64,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Check the chain from its beginning to its end.
    Verify(Place),
    /// The last decisions.
    Show {
        /// Only those about this extension.
        id: Option<String>,
        /// How many.
        #[arg(long, short = 'n', default_value_t = 20)]
        lines: usize,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Subcommand)]
pub(crate) enum SandboxCommand {
    /// Try every layer, and say what an untrusted extension would get.
    Probe,
}
