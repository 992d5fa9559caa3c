"""What no operator can add: programs that run others or change something by design, and kinds that hold secrets."""

import os
import re
import stat
from pathlib import Path

from mcp_ops.ops.extension.model import Wrong
from mcp_ops.ops.guards.shell.files import DESTRUCTIVE
from mcp_ops.ops.guards.shell.tables import PROGRAMS

_REASONS = {
    "it runs whatever program it is given": (
        "ash bash busybox choom chroot chrt command csh dash doas env eval exec expect fakeroot fish flock ionice ksh "
        "ld.so ltrace mksh nice nohup nsenter numactl parallel perf prlimit proot rbash run-parts runcon runuser "
        "screen script setarch setpriv setsid sh ssh start-stop-daemon stdbuf strace su sudo systemd-run taskset "
        "tcsh time timeout tmux toybox uclampset unshare valgrind watch xargs yash zsh"
    ),
    "its language can run programs and write files": (
        "awk bc dc ed ex emacs erl gawk gdb groovy irb java jshell lua luajit m4 make gmake mawk nawk node nodejs "
        "original-awk perl php pwsh python rscript ruby sed sqlite sqlite tclsh vi view vim vimdiff"
    ),
    "it can start a pager, an editor or a helper program": (
        "fd fdfind git gmake hg journalctl less man more most nano pager pg rg ripgrep sdiff svn tig zless zmore"
    ),
    "it writes its output to a file": (
        "7z ar as bunzip2 bzip2 c++ cc clang clang++ cp cpio cpp csplit ctags dd fallocate g++ gcc gpg gunzip gzip "
        "install ld link ln logger lz4 lzma mcopy mkdir mkfifo mknod mktemp mv objcopy openssl patch pigz ranlib "
        "rename shred split strip tar tee touch truncate uncompress unlzma unxz unzip unzstd xxd xz zip zstd"
    ),
    "it talks to other machines": (
        "curl dig ftp host mysql nc ncat netcat nslookup psql redis-cli rsync scp sftp socat telnet tftp wget"
    ),
    "it changes the system": (
        "apt apt-get at batch busctl chcon chmod chown crontab date dbus-send dmesg dnf docker dpkg helm hostname "
        "hostnamectl hwclock ifconfig insmod ip iptables kubectl losetup mount nft nixos-rebuild npm passwd pip podman "
        "renice route rpm service setfacl setfattr snap stty swapon sysctl timedatectl umount useradd wall write yum"
    ),
}
_WHY = {name: why for why, names in _REASONS.items() for name in names.split()}
_VERSION = re.compile(r"[-.]?[0-9][0-9.]*$")

_KINDS_WITH_SECRETS = ("secret", "token", "credential", "password", "keystore")
_EVERYTHING = frozenset({"all", "any"})


def refuse_program(name: str, path: Path | None) -> None:
    """Refuse a program that ships already, or that no option table can tame.

    Args:
        name: Bare name, as the operator wrote it.
        path: Where it is on this machine; None when it is not installed.

    Raises:
        Wrong: It cannot be added.
    """
    if name in PROGRAMS:
        raise Wrong(f"{name} has a table already, and it cannot be replaced; leave it out")
    known_as = {name, os.path.realpath(path).rpartition("/")[2]} if path is not None else {name}
    for alias in sorted(known_as):
        plain = alias.casefold()
        why = _WHY.get(plain) or _WHY.get(_VERSION.sub("", plain))
        if plain in DESTRUCTIVE:
            why = "it is destructive"
        if why is not None:
            shown = name if alias == name else f"{name}, which is {alias} on this machine,"
            raise Wrong(f"{shown} can never be added: {why}")
    if path is not None:
        _refuse_file(name, path)


def _refuse_file(name: str, path: Path) -> None:
    try:
        mode = path.stat().st_mode
        with path.open("rb") as file:
            begins = file.read(2)
    except OSError as error:
        raise Wrong(f"{name} cannot be looked at: {path}: {error.strerror}") from None
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise Wrong(f"{name} can never be added: it runs with the rights of another user ({path} is setuid or setgid)")
    if begins == b"#!":
        raise Wrong(f"{name} can never be added: {path} is a script, which runs other programs")


def refuse_kind(spelling: str) -> None:
    """Refuse a name of a kind whose objects are secrets, or that stands for several kinds.

    Raises:
        Wrong: It cannot be added.
    """
    word = next((word for word in _KINDS_WITH_SECRETS if word in spelling), None)
    if word is not None:
        raise Wrong(
            f"{spelling} can never be added: a kind with {word!r} in its name is taken for one that holds secrets"
        )
    if spelling in _EVERYTHING:
        raise Wrong(f"{spelling} can never be added: it stands for several kinds")
