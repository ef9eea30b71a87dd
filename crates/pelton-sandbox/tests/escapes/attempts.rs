//! What is tried. One row is one attempt: what is run, and what would show that it has succeeded.

/// One attempt to get out.
pub struct Attempt {
    pub name: &'static str,
    pub way: Way,
    pub sign: Sign,
    /// How the form without namespaces deals with it.
    pub weakly: Weakly,
    /// Things renamed beforehand, so that the attempt meets the disk as it wants it.
    pub before: &'static [(&'static str, &'static str)],
    /// Variables the command is started with.
    pub env: &'static [(&'static str, &'static str)],
    /// With sockets on the file system allowed: then other sides have to hold.
    pub unix_sockets: bool,
    /// With a network of its own.
    pub loopback: bool,
}

pub enum Way {
    /// A line for bash.
    Shell(&'static str),
    /// A system call of `raw.rs`.
    Raw(&'static str),
}

/// What shows success.
#[derive(Clone, Copy)]
pub enum Sign {
    /// It says so itself.
    ExitsZero,
    /// Something changed in the directory beside.
    Outside,
    /// Something protected is not as it was, after all that is done at the end.
    Inside(&'static str),
    /// A process outside has ended.
    VictimEnds,
    /// A letter has come to a socket on the file system.
    Letter,
    /// A packet has come.
    Packet,
}

/// What the form without namespaces does.
#[derive(Clone, Copy)]
pub enum Weakly {
    /// It holds too.
    Holds,
    /// It finds it afterwards, undoes it and says so.
    Undone,
    /// It cannot, for this reason.
    Not(&'static str),
}

const fn shell(name: &'static str, sign: Sign, script: &'static str) -> Attempt {
    Attempt {
        name,
        way: Way::Shell(script),
        sign,
        weakly: Weakly::Holds,
        before: &[],
        env: &[],
        unix_sockets: false,
        loopback: false,
    }
}

const fn raw(name: &'static str) -> Attempt {
    Attempt { way: Way::Raw(name), ..shell(name, Sign::ExitsZero, "") }
}

const fn outside(name: &'static str, script: &'static str) -> Attempt {
    shell(name, Sign::Outside, script)
}

/// Something protected is changed, or made.
const fn protected(name: &'static str, path: &'static str, script: &'static str) -> Attempt {
    Attempt { weakly: Weakly::Undone, ..shell(name, Sign::Inside(path), script) }
}

const fn missing(
    name: &'static str,
    path: &'static str,
    script: &'static str,
    gone: &'static [(&'static str, &'static str)],
) -> Attempt {
    Attempt { before: gone, ..protected(name, path, script) }
}

/// A protected name that is not there is made, if only while the command runs.
const fn for_a_moment(name: &'static str, script: &'static str) -> Attempt {
    Attempt { weakly: MOMENT, ..shell(name, Sign::ExitsZero, script) }
}

const MOMENT: Weakly = Weakly::Not("names that are made are found when the command has ended");

/// What Landlock has no word for.
const METADATA: Weakly =
    Weakly::Not("Landlock does not know permissions, owners, times and attributes of files");

pub const ATTEMPTS: &[Attempt] = &[
    // Writing outside.
    outside("absolute path", "echo x > $OUT/new"),
    outside("dots", "echo x > ../out/new"),
    outside("many dots", "echo x > src/../../work/../out/new"),
    outside("append", "echo x >> $OUT/victim"),
    outside("truncate", "truncate -s 0 $OUT/victim"),
    outside("remove", "rm -f $OUT/victim"),
    outside("remove a directory", "rmdir $OUT/dir"),
    outside("make a directory", "mkdir $OUT/dir2"),
    outside("symbolic link to a directory", "ln -s $OUT link; echo x > link/new"),
    outside("symbolic link to a file", "ln -s $OUT/victim link; echo x > link"),
    outside("dangling link", "ln -s $OUT/new link; echo x > link"),
    outside("chain of links", "ln -s .. a; ln -s a/out b; echo x > b/new"),
    outside("hard link to a file outside", "ln $OUT/victim hard && echo x > hard"),
    outside("hard link from inside", "ln src/main.c $OUT/hard"),
    outside("rename out", "mv src/main.c $OUT/moved"),
    outside("rename in", "mv $OUT/victim taken"),
    outside("rename a directory in", "mv $OUT/dir taken"),
    outside("symbolic link outside", "ln -s x $OUT/link"),
    outside("copy", "cp src/main.c $OUT/copy"),
    outside("tee", "echo x | tee $OUT/new"),
    outside("dd", "dd if=/dev/zero of=$OUT/victim count=1"),
    outside("fifo", "mkfifo $OUT/fifo"),
    outside("reopen by /dev/fd", "exec 3<$OUT/victim; echo x > /dev/fd/3"),
    outside("reopen by /proc", "exec 3<$OUT/victim; echo x > /proc/self/fd/3"),
    outside("read and write", "exec 3<>$OUT/victim; echo x >&3"),
    outside("/proc/self/root", "echo x > /proc/self/root$OUT/new"),
    outside("/proc/self/cwd", "cd /; echo x > /proc/self/cwd$OUT/new"),
    outside("/proc/PID/root of the victim", "echo x > /proc/$VICTIM/root$OUT/new"),
    outside("/proc/PID/cwd of the victim", "echo x > /proc/$VICTIM/cwd/new"),
    outside("/proc/PID/fd of the victim", "echo x > /proc/$VICTIM/fd/1"),
    outside("root of the parent", "echo x > /proc/$PPID/root$OUT/new || echo x > /proc/$DRIVER/root$OUT/new"),
    outside("inherited descriptor", "echo xxxxx >&$LEAKED"),
    outside("changing directory first", "cd $OUT && echo x > new"),
    outside("subshell in the background", "(sleep 0.05; echo x > $OUT/new) & wait"),
    outside("daemon", "setsid sh -c 'echo x > $OUT/new' & sleep 0.2"),
    outside("program from shared memory", "cp /bin/sh ./own && ./own -c 'echo x > $OUT/new'"),
    Attempt { way: Way::Raw("memfd"), ..outside("program from memory", "") },
    Attempt { way: Way::Raw("tmpfile"), ..outside("unnamed file, linked", "") },
    Attempt { way: Way::Raw("openat-dirfd"), ..outside("by a directory's descriptor", "") },
    Attempt { way: Way::Raw("openat2"), ..outside("openat2", "") },
    Attempt { way: Way::Raw("renameat2"), ..outside("exchange of two names", "") },
    Attempt {
        env: &[("LD_DEBUG", "libs"), ("LD_DEBUG_OUTPUT", "$OUT/steered")],
        ..outside("variables that steer the helper", "/bin/true")
    },
    Attempt { weakly: METADATA, ..outside("chmod", "chmod 777 $OUT/victim") },
    Attempt { weakly: METADATA, ..outside("times", "touch -d 2001-01-01 $OUT/victim") },
    Attempt { weakly: METADATA, way: Way::Raw("setxattr"), ..outside("attributes", "") },
    outside("chown", "chown 65533 $OUT/victim"),
    outside("device in the workspace", "mknod sda b 8 0 && echo made > $OUT/new"),
    // Reading what is denied.
    shell("denied file", Sign::ExitsZero, "grep -q hush $SECRET_FILE"),
    shell("denied directory", Sign::ExitsZero, "grep -q hush $SECRETS/key"),
    shell("denied by a link", Sign::ExitsZero, "ln -s $SECRETS s; grep -q hush s/key"),
    shell("denied by dots", Sign::ExitsZero, "grep -q hush $OUT/../secrets/key"),
    shell("denied by /proc/self/root", Sign::ExitsZero, "grep -q hush /proc/self/root$SECRETS/key"),
    shell("denied by a hard link", Sign::ExitsZero, "ln $SECRET_FILE here && grep -q hush here"),
    shell("denied by renaming", Sign::ExitsZero, "mv $SECRET_FILE here && grep -q hush here"),
    shell("denied by copying a directory", Sign::ExitsZero, "cp -r $SECRETS copy && grep -q hush copy/key"),
    shell("environment of a process outside", Sign::ExitsZero, "grep -q hush /proc/$VICTIM/environ"),
    shell(
        "disk as a whole",
        Sign::ExitsZero,
        "cat /dev/vd? /dev/sd? /dev/nvme?n1 2>/dev/null | head -c 1 | od -An -c | grep -q .",
    ),
    shell("kernel log", Sign::ExitsZero, "dmesg | head -1 | grep ."),
    // Protected names that are there.
    protected("git hook", ".git/hooks/pre-commit", "echo evil > .git/hooks/pre-commit"),
    protected("git configuration", ".git/config", "echo evil >> .git/config"),
    protected(
        "git configuration by git",
        ".git/config",
        "git config core.fsmonitor evil || echo '[core] fsmonitor = evil' > .git/config",
    ),
    protected("git configuration by renaming", ".git/config", "echo evil > c; mv -f c .git/config"),
    protected("git configuration removed", ".git/config", "rm -f .git/config"),
    protected("git directory moved away", ".git/config", "mv .git old; mkdir .git; echo evil > .git/config"),
    protected(
        "hooks moved away",
        ".git/hooks/pre-commit",
        "mv .git/hooks h; mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
    ),
    protected("hooks as a link", ".git/hooks", "mkdir evil; mv .git/hooks h; ln -s ../evil .git/hooks"),
    protected("common directory of git", ".git/commondir", "mkdir evil; echo ../evil > .git/commondir"),
    protected("editor's tasks", ".vscode/tasks.json", "echo evil > .vscode/tasks.json"),
    protected(
        "editor's directory as a link",
        ".vscode/tasks.json",
        "mkdir evil; echo evil > evil/tasks.json; mv .vscode v; ln -s evil .vscode",
    ),
    protected("through a link to it", ".vscode/tasks.json", "ln -s .vscode v; echo evil > v/tasks.json"),
    protected("through a hard link", ".npmrc", "ln .npmrc n && echo evil > n"),
    protected("registry of packages", ".npmrc", "echo evil >> .npmrc"),
    protected("repository further down", "sub/.git/config", "echo evil >> sub/.git/config"),
    protected(
        "parent moved away",
        "sub/.git/config",
        "mv sub s2; mkdir -p sub/.git; echo evil > sub/.git/config",
    ),
    // And those that are not there yet.
    protected(
        "settings that are missing",
        ".claude/settings.json",
        "mkdir -p .claude; echo evil > .claude/settings.json",
    ),
    protected(
        "settings by renaming the parent",
        ".claude/settings.json",
        "mkdir c; echo evil > c/settings.json; mv -T c .claude",
    ),
    protected(
        "settings as a link",
        ".claude/settings.json",
        "mkdir c; echo evil > c/settings.json; ln -sT c .claude",
    ),
    protected("servers that are missing", ".mcp.json", "echo evil > .mcp.json"),
    protected("servers by renaming", ".mcp.json", "echo evil > m; mv -fT m .mcp.json"),
    protected("servers by linking", ".mcp.json", "echo evil > m; ln -fT m .mcp.json"),
    protected("servers after removal", ".mcp.json", "rm -rf .mcp.json; echo evil > .mcp.json"),
    protected("start-up file that is missing", ".bashrc", "echo evil > .bashrc"),
    protected("environment that is missing", ".envrc", "echo evil > .envrc"),
    for_a_moment("a name for a moment", "echo evil > .envrc; test -s .envrc"),
    for_a_moment("a name of many, for a moment", "echo evil > .yarnrc.yml; test -s .yarnrc.yml"),
    for_a_moment("a plain name for a moment", "echo evil > lefthook.yml; test -s lefthook.yml"),
    for_a_moment("by its whole path", "echo evil > $PWD/src/../.envrc; test -s .envrc"),
    for_a_moment("from below", "cd src; echo evil > ../.envrc; test -s ../.envrc"),
    for_a_moment("through /proc", "echo evil > /proc/self/cwd/.envrc; test -s .envrc"),
    for_a_moment("through a descriptor", "exec 3<.; echo evil > /proc/self/fd/3/.envrc; test -s .envrc"),
    for_a_moment(
        "through a link in a directory that is open",
        "exec 3<.; ln -s .envrc x; cd /; echo evil > /dev/fd/3/x; test -s /dev/fd/3/.envrc",
    ),
    for_a_moment("by renaming", "echo evil > x; mv x .envrc; test -s .envrc"),
    for_a_moment("by linking", "ln src/main.c .envrc; test -s .envrc"),
    for_a_moment("by a symbolic link", "ln -s src/main.c .envrc; test -s .envrc"),
    for_a_moment("through a dangling link", "ln -s .envrc x; echo evil > x; test -s .envrc"),
    for_a_moment(
        "through a chain of links",
        "ln -s ../.envrc src/y; ln -s src/y x; echo evil > x; test -s .envrc",
    ),
    for_a_moment("through a link to the directory", "ln -s . d; echo evil > d/.envrc; test -s .envrc"),
    for_a_moment("by a directory", "mkdir .envrc; test -d .envrc"),
    for_a_moment("by a fifo", "mkfifo .envrc; test -p .envrc"),
    for_a_moment("somewhere else than git thinks", "echo ../x > .git/commondir; test -s .git/commondir"),
    for_a_moment("deeper down, for a moment", "echo evil > src/.npmrc; test -s src/.npmrc"),
    for_a_moment(
        "in a directory that is new",
        "mkdir -p a/b/c/d/e; cd a/b/c/d/e; echo evil > .npmrc; test -s .npmrc",
    ),
    for_a_moment("a tools' directory deeper down", "mkdir -p x/.cargo; test -d x/.cargo"),
    for_a_moment("deeper down by renaming", "echo evil > x; mv x src/.envrc; test -s src/.envrc"),
    for_a_moment("deeper down through a link", "ln -s src l; echo evil > l/.envrc; test -s src/.envrc"),
    protected("deeper down and missing", "src/.npmrc", "echo evil > src/.npmrc"),
    protected("deeper down with other letters", "src/.EnvRC", "echo evil > src/.EnvRC"),
    protected(
        "deeper down by moving a directory there",
        "src/x/.npmrc",
        "mkdir -p node_modules/x; echo evil > node_modules/x/.npmrc; mv node_modules/x src/x",
    ),
    protected("a repository deeper down", "src/.git/config", "git init -q src"),
    Attempt { weakly: MOMENT, ..raw("protected-openat2") },
    Attempt { weakly: MOMENT, ..raw("protected-tmpfile") },
    Attempt { weakly: MOMENT, ..raw("protected-thread") },
    protected(
        "tools' directory that is missing",
        ".cargo/config.toml",
        "mkdir -p .cargo; echo evil > .cargo/config.toml",
    ),
    protected("git's hooks by husky", ".husky/pre-commit", "mkdir -p .husky; echo evil > .husky/pre-commit"),
    protected("other letters", ".Idea/x", "mkdir -p .Idea; echo evil > .Idea/x"),
    protected("other letters of a file", ".MCP.json", "echo evil > .MCP.json"),
    missing(
        "hooks that are missing",
        ".git/hooks/pre-commit",
        "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
        &[("work/.git/hooks", "hooks")],
    ),
    missing(
        "configuration that is missing",
        ".git/config",
        "echo evil > .git/config",
        &[("work/.git/config", "config")],
    ),
    missing(
        "repository that is missing",
        ".git/config",
        "mkdir .git; echo evil > .git/config",
        &[("work/.git", "git")],
    ),
    missing("repository that is made by git", ".git/HEAD", "git init -q .", &[("work/.git", "git")]),
    // Processes outside.
    shell("signal", Sign::VictimEnds, "kill -9 $VICTIM"),
    shell(
        "signal by another program",
        Sign::VictimEnds,
        "perl -e 'kill 9, $ENV{VICTIM}' || /bin/kill -s KILL $VICTIM",
    ),
    raw("ptrace"),
    raw("process-vm-writev"),
    raw("pidfd-getfd"),
    raw("kcmp"),
    raw("proc-mem"),
    // Doors of the kernel.
    raw("io-uring"),
    raw("bpf"),
    raw("userfaultfd"),
    raw("keyctl"),
    raw("add-key"),
    raw("perf-event-open"),
    raw("personality"),
    raw("syslog"),
    raw("sethostname"),
    raw("iopl"),
    raw("open-by-handle-at"),
    raw("tiocsti"),
    shell(
        "setting of the kernel",
        Sign::ExitsZero,
        "p=/proc/sys/kernel/core_pattern; v=$(cat $p) && echo \"$v\" > $p",
    ),
    shell(
        "control group",
        Sign::ExitsZero,
        "d=$(ls -d /sys/fs/cgroup/*/ | head -1); mkdir ${d}pelton-$$ && rmdir ${d}pelton-$$",
    ),
    shell("program of another user", Sign::ExitsZero, "test $($OUT/suid -u) != $UID"),
    // Namespaces and mounts.
    raw("unshare-user"),
    raw("clone-user"),
    raw("clone3-user"),
    raw("setns"),
    raw("mount-tmpfs"),
    raw("remount"),
    raw("umount"),
    raw("pivot-root"),
    raw("chroot"),
    raw("open-tree"),
    raw("fsopen"),
    raw("mount-setattr"),
    shell("unshare", Sign::ExitsZero, "unshare -U true"),
    shell(
        "mount over a protected name",
        Sign::ExitsZero,
        "mkdir evil; unshare -Urm mount --bind evil .git/hooks",
    ),
    // The network.
    shell("TCP", Sign::ExitsZero, "exec 3<>/dev/tcp/127.0.0.1/$PORT"),
    shell("UDP", Sign::Packet, "echo x > /dev/udp/127.0.0.1/$UDP_PORT"),
    Attempt {
        loopback: true,
        ..shell(
            "TCP to the machine with a network of its own",
            Sign::ExitsZero,
            "exec 3<>/dev/tcp/127.0.0.1/$PORT",
        )
    },
    Attempt {
        loopback: true,
        ..shell(
            "UDP to the machine with a network of its own",
            Sign::Packet,
            "echo x > /dev/udp/127.0.0.1/$UDP_PORT",
        )
    },
    raw("socket-inet"),
    raw("socket-inet6"),
    raw("socket-netlink"),
    raw("socket-packet"),
    raw("socket-raw"),
    raw("socket-vsock"),
    raw("socket-alg"),
    raw("socket-32-bit"),
    raw("bind-inet"),
    raw("unix-connect"),
    raw("unix-abstract"),
    Attempt { unix_sockets: true, ..raw("unix-abstract") },
    Attempt { way: Way::Raw("unix-letter"), ..shell("letter to a socket", Sign::Letter, "") },
    Attempt { way: Way::Raw("unix-letter-pair"), ..shell("letter by a pair of sockets", Sign::Letter, "") },
];
