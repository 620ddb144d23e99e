//! The system call filter: a list of what no sidecar needs and what would undo the other layers.
//!
//! A denied call answers EPERM, so that programs fail with a message and not with a core dump. `clone3` answers ENOSYS,
//! because its flags are behind a pointer no filter can follow; the C library then uses `clone`, whose flags are checked.
//! Calls through a foreign architecture (32-bit, x32) would have other numbers, so they end the process.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use crate::sandbox::{Layer, Network};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Filters the calling thread and everything it starts.
pub(super) fn apply(network: Network) -> Layer {
    let applied = programs(network).map_err(|error| error.to_string()).and_then(|programs| {
        programs
            .iter()
            .try_for_each(|program| seccompiler::apply_filter(program).map_err(|error| error.to_string()))
    });
    match applied {
        Ok(()) => Layer::Applied,
        Err(reason) => Layer::Missing { reason },
    }
}

/// Takes from the calling thread, and what it becomes, the ability to start processes. Threads are no processes.
pub(super) fn stay_alone() -> Result<(), String> {
    let architecture: TargetArch =
        std::env::consts::ARCH.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let filter = || -> Result<BpfProgram, seccompiler::BackendError> {
        let no_thread = SeccompCondition::new(0, Width::Dword, Is::MaskedEq(thread), 0)?;
        let mut rules = Rules::from([(libc::SYS_clone, vec![SeccompRule::new(vec![no_thread])?])]);
        #[cfg(target_arch = "x86_64")]
        rules.extend([(libc::SYS_fork, Vec::new()), (libc::SYS_vfork, Vec::new())]);
        // `clone3` is answered with ENOSYS by the filter of the box.
        let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).and_then(BpfProgram::try_from)
    };
    let filter = filter().map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&filter).map_err(|error| error.to_string())
}

/// Leaves the calling thread what a program needs that only computes: reading and writing what is open, memory, the
/// clock, randomness, and its own end. Everything else answers EPERM.
pub(super) fn leave_computing() -> Layer {
    match computing_filter() {
        Some(filter) => match seccompiler::apply_filter(&filter) {
            Ok(()) => Layer::Applied,
            Err(error) => Layer::Missing { reason: error.to_string() },
        },
        None => Layer::Missing { reason: format!("no filter for {}", std::env::consts::ARCH) },
    }
}

/// The calls of a program that only computes, the frequent ones first.
const COMPUTING: [i64; 27] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    // memory
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    // waiting for a pipe
    libc::SYS_ppoll,
    libc::SYS_restart_syscall,
    // signals and the end
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_close,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // harmless questions of the C library
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_clock_getres,
];

/// Written by hand, because it is put together at every start of a sidecar: a comparison a call, and no compiler.
fn computing_filter() -> Option<BpfProgram> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => 0xC000_003E,
        "aarch64" => 0xC000_00B7,
        _ => return None,
    };
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let load = |offset| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let equal = |k, jt, jf| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, jf, k);
    let answer = |k| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let mut filter = Vec::with_capacity(COMPUTING.len() + 6);
    // Of what the filter sees the number of the call is at 0 and the architecture at 4.
    filter.push(load(4));
    filter.push(equal(architecture, 1, 0));
    filter.push(answer(libc::SECCOMP_RET_KILL_PROCESS));
    filter.push(load(0));
    for (i, call) in COMPUTING.into_iter().enumerate() {
        // Over the comparisons that are left and the refusal. A number with the bit of x32 in it is equal to none.
        let to_allowed = COMPUTING.len() - i;
        filter.push(equal(u32::try_from(call).ok()?, u8::try_from(to_allowed).ok()?, 0));
    }
    filter.push(answer(libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()));
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    Some(filter)
}

fn programs(network: Network) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let compile = |rules: Rules, errno: i32| {
        let denied = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture).and_then(BpfProgram::try_from)
    };
    let mut programs = vec![
        compile(denied(network)?, libc::EPERM)?,
        compile(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?,
    ];
    if cfg!(target_arch = "x86_64") {
        programs.push(no_x32());
    }
    Ok(programs)
}

/// Always denied, whatever the arguments.
const DENIED: &[i64] = &[
    // looking into other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // another view of the file system
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // other namespaces
    libc::SYS_unshare,
    libc::SYS_setns,
    // large surfaces of the kernel; io_uring would do what the filter forbids
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // the machine itself
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// The calls that make or use sockets by name; `socketpair` and inherited sockets keep working.
const SOCKETS: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

const NEW_NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

fn denied(network: Network) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let when = |conditions: Vec<SeccompCondition>| SeccompRule::new(conditions);
    let argument = |index, is, value| SeccompCondition::new(index, Width::Dword, is, value);

    let mut clones = Vec::new();
    for flag in NEW_NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clones.push(when(vec![argument(0, Is::MaskedEq(flag), flag)?])?);
    }
    rules.insert(libc::SYS_clone, clones);

    // Asking for the personality (all ones) and setting the ordinary one are harmless.
    let unusual = vec![argument(0, Is::Ne, 0)?, argument(0, Is::Ne, 0xffff_ffff)?];
    rules.insert(libc::SYS_personality, vec![when(unusual)?]);

    // Typing into the terminal the host was started from.
    let pushes = [libc::TIOCSTI, libc::TIOCLINUX].into_iter().map(|request| {
        // The kernel looks at the low 32 bits only, and so does this.
        when(vec![argument(1, Is::Eq, request & 0xffff_ffff)?])
    });
    rules.insert(libc::SYS_ioctl, pushes.collect::<Result<_, _>>()?);

    match network {
        Network::Deny => rules.extend(SOCKETS.iter().map(|call| (*call, Vec::new()))),
        Network::UnixOnly => {
            let foreign = vec![argument(0, Is::Ne, u64::from(libc::AF_UNIX.unsigned_abs()))?];
            rules.insert(libc::SYS_socket, vec![when(foreign)?]);
        }
        Network::Allow => {}
    }
    Ok(rules)
}

/// x32 calls come under the architecture of x86-64 with this bit in the number, past every rule above.
fn no_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    vec![
        // The number of the call is the first word of what the filter sees.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
