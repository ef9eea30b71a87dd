//! Which system calls are refused. The list is made without looking at the machine; only [`install`] touches the process.

use std::collections::BTreeMap;

use nix::libc::{self, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::{Failure, failed};
use crate::orders::Orders;
use crate::policy::Network;

/// Calls that nothing in the box has business with, whatever it says to them.
const REFUSED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    // Ways round this filter, and doors of the kernel that have been forced before.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_personality,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// `open_tree_attr`, which not every `libc` knows by name yet. One number everywhere.
const OPEN_TREE_ATTR: c_long = 467;

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

const NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// Refuses what the orders refuse, for this process and all it starts.
pub(super) fn install(orders: &Orders) -> Result<(), Failure> {
    for program in programs(orders)? {
        seccompiler::apply_filter(&program).map_err(failed("system calls cannot be filtered"))?;
    }
    Ok(())
}

fn programs(orders: &Orders) -> Result<Vec<BpfProgram>, Failure> {
    let refuse = filter(refused(orders)?, libc::EPERM)?;
    // Its flags are behind a pointer, where nobody can look. Whoever is told that it does not exist uses `clone`.
    let clone3 = filter(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    Ok(vec![other_numbers(), clone3, refuse])
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, Failure> {
    let arch =
        TargetArch::try_from(std::env::consts::ARCH).map_err(failed("no filter for this processor"))?;
    // An errno is a small positive number.
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch);
    filter.and_then(TryInto::try_into).map_err(failed("the filter of system calls cannot be made"))
}

/// On x86-64 every call has a second number, for 32-bit pointers: those are refused altogether.
fn other_numbers() -> BpfProgram {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP_IF_BITS: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const SECOND_NUMBERS: u32 = 0x4000_0000;
    let statement = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        statement(LOAD, 0, 0),
        // Set: over the next to the one that refuses.
        statement(JUMP_IF_BITS, 1, SECOND_NUMBERS),
        statement(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        statement(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}

fn refused(orders: &Orders) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Failure> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in REFUSED.iter().chain(REFUSED_HERE).chain(&[OPEN_TREE_ATTR]) {
        rules.insert(*call, Vec::new());
    }
    // The words are of 32 bits: what is above does not count for the kernel, so it must not count here.
    let is = |arg, value: i32| condition(arg, SeccompCmpOp::Eq, u64::from(value.cast_unsigned()));
    let is_not = |arg, value: i32| condition(arg, SeccompCmpOp::Ne, u64::from(value.cast_unsigned()));
    let masked = |arg, mask, value| condition(arg, SeccompCmpOp::MaskedEq(mask), value);

    // Asking for any new namespace.
    let mut bit = 1u64;
    while bit <= NAMESPACES {
        if NAMESPACES & bit != 0 {
            rules.entry(libc::SYS_clone).or_default().push(rule(vec![masked(0, bit, bit)?])?);
        }
        bit <<= 1;
    }
    // Typing into a terminal in somebody's place.
    for request in [libc::TIOCSTI as i32, libc::TIOCLINUX as i32] {
        rules.entry(libc::SYS_ioctl).or_default().push(rule(vec![is(1, request)?])?);
    }

    let kind = |value: i32| masked(1, 0xf, u64::from(value.cast_unsigned()));
    let socket = rules.entry(libc::SYS_socket).or_default();
    match orders.network {
        Network::Off => {
            socket.push(rule(vec![is_not(0, libc::AF_UNIX)?])?);
        }
        Network::Loopback | Network::Bridge(_) => {
            let mut others = vec![is_not(0, libc::AF_INET)?, is_not(0, libc::AF_INET6)?];
            if orders.unix_sockets {
                others.push(is_not(0, libc::AF_UNIX)?);
            }
            socket.push(rule(others)?);
            // Headers of one's own making.
            socket.push(rule(vec![kind(libc::SOCK_RAW)?])?);
        }
    }
    if !orders.unix_sockets {
        // Letters to a socket of any name need no connection.
        for call in [libc::SYS_socket, libc::SYS_socketpair] {
            let letters = rule(vec![is(0, libc::AF_UNIX)?, kind(libc::SOCK_DGRAM)?])?;
            rules.entry(call).or_default().push(letters);
        }
        if orders.network == Network::Off {
            for call in
                [libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept4, libc::SYS_sendmmsg]
            {
                rules.insert(call, Vec::new());
            }
            #[cfg(not(target_arch = "riscv64"))]
            rules.insert(libc::SYS_accept, Vec::new());
            // Without an address it is what `send` does on a pair that is connected already.
            let addressed = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
            let addressed = addressed.map_err(failed("a condition cannot be made"))?;
            rules.insert(libc::SYS_sendto, vec![rule(vec![addressed])?]);
        }
    }
    Ok(rules)
}

fn condition(arg: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Failure> {
    SeccompCondition::new(arg, SeccompCmpArgLen::Dword, operator, value)
        .map_err(failed("a condition cannot be made"))
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Failure> {
    SeccompRule::new(conditions).map_err(failed("a rule cannot be made"))
}
