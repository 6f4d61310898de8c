"""Who builds, who owns and who runs subjects, and where Prony keeps what they need.

When Prony is started as root, it uses root's privileges only to set up sandboxes, and to own what was built.
Servers and frontends run as an ordinary user: ``--run-as``, else the caller of sudo, else ``nobody``.
Packages are built by another one, and the load is sent by a third, so that a subject can change neither. An
ordinary user's Prony does all of it as that user.

Whether another user can reach a file: by owner, group and permission bits.

Ignores access control lists and security modules: programs that must run are tried instead.
"""

import os
import pwd
import shutil
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from prony.core.errors import HostError, UsageError

SUBJECT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where subjects find programs: not the caller's PATH, so that two users measure the same."""

HIDES_SESSIONS = "--inspect-publish-uid=stderr"
"""In ``NODE_OPTIONS`` of subjects: an inspector's session is named in their output alone."""

# Who may build: an account made for it, else the first of those that every distribution has and that owns
# nothing. Some programs, such as initdb, need a user with a name.
_BUILDERS = ("prony-build", "nobody", "bin", "daemon")
# Who sends the load: a number without an account. *Source*: systemd, Users, Groups, UIDs and GIDs: 60578 to
# 61183 are unused.
_GENERATOR = 60_941


# Who fetches packages that need no build: the same, so that no build can change what it keeps.
_KEEPER = 60_942


@dataclass(frozen=True, slots=True)
class BuildRules:
    """What one command of a build may use; None: as much as a subject, and half an hour.

    ``hosts``: what it may reach besides the package indices. ``trusted``: it runs outside of the sandbox.
    """

    memory_bytes: int | None = None
    processes: int | None = None
    disk_bytes: int | None = None
    time_ns: int | None = None
    hosts: tuple[str, ...] = ()
    trusted: bool = False


_USUAL_RULES = BuildRules()


@dataclass(frozen=True, slots=True)
class RunAs:
    """The user that subjects run as. ``drop`` is true when Prony is root and must change to it.

    ``cache`` is a folder that this user can read: environments, copies of apps, and the folders of trials
    live there. ``build``: the rules for what is built for them.
    """

    name: str
    uid: int
    gid: int
    drop: bool
    cache: Path
    build: BuildRules = _USUAL_RULES

    def groups(self) -> tuple[int, ...]:
        """Return the supplementary groups: the user's own when privileges are dropped, else none to set."""
        return tuple(os.getgrouplist(self.name, self.gid)) if self.drop else tuple(os.getgroups())


def resolve_user(run_as: str | None = None, build: BuildRules = _USUAL_RULES) -> RunAs:
    """Return the user that subjects run as on this machine; ``build``: the rules for what is built.

    *Errors*: UsageError for an unknown user, or when Prony is not root and the user is not the caller.
    """
    if os.geteuid() != 0:
        return replace(_caller(run_as), build=build)
    entry = _entry(run_as) if run_as else _sudo_caller() or _entry("nobody")
    return RunAs(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_uid != 0, _cache_of_root(), build)


def builder_for(user: RunAs) -> RunAs:
    """Return the user that builds what ``user`` runs: another one where Prony may choose, else the same.

    *Errors*: HostError when this machine has no such user.
    """
    if not user.drop:
        return user
    found = (_found(name) for name in _BUILDERS)
    entry = next((one for one in found if one and one.pw_uid not in (0, user.uid)), None)
    if entry is None:
        raise HostError(
            f"no user but `{user.name}` can build packages: this machine has none of {', '.join(_BUILDERS)}",
            hint="useradd --system prony-build",
        )
    return RunAs(entry.pw_name, entry.pw_uid, entry.pw_gid, True, user.cache, user.build)


def keeper_for(user: RunAs) -> RunAs:
    """Return the user that fetches packages which need no build: another one where Prony may choose."""
    if not user.drop:
        return user
    return RunAs("prony-keeper", _KEEPER, _KEEPER, True, user.cache, user.build)


def generator_for(user: RunAs) -> RunAs:
    """Return the user that sends load to what ``user`` runs: another one where Prony may choose."""
    return RunAs("generator", _GENERATOR, _GENERATOR, True, user.cache) if user.drop else user


def make_passable(folder: Path) -> None:
    """Create a folder and its parents so that any user may enter, whatever the umask. *Errors*: OSError."""
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            path.mkdir(exist_ok=True)
            path.chmod(0o755)


def own_folder(path: Path, user: RunAs, mode: int = 0o755) -> Path:
    """Create ``path`` (and its parents) as a folder of ``user`` and return it.

    *Errors*: HostError when it cannot be created.
    """
    try:
        make_passable(path)
        if user.drop:
            os.chown(path, user.uid, user.gid)
        path.chmod(mode)
    except OSError as error:
        raise HostError(
            f"cannot create the folder `{path}`: {error.strerror}",
            hint="choose another place with the environment variable PRONY_CACHE",
        ) from error
    return path


def expanded(path: Path) -> Path:
    """Return a path with the home that `~` names; one of nobody's stays as it is written."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def find_uv() -> str:
    """Return the path of uv: the one installed beside Prony, else the one on PATH.

    *Errors*: HostError when there is none.
    """
    from uv import find_uv_bin

    try:
        return str(find_uv_bin())
    except FileNotFoundError:
        found = shutil.which("uv")
        if found is None:
            raise HostError("`uv` is not installed beside Prony", hint="python3 -m pip install uv") from None
        return found


def _caller(run_as: str | None) -> RunAs:
    uid = os.geteuid()
    name = user_name(uid)
    if run_as and _entry(run_as).pw_uid != uid:
        raise UsageError(
            f"`--run-as {run_as}` needs root; Prony runs as `{name}`",
            hint="leave `--run-as` out, or use sudo",
        )
    return RunAs(name, uid, os.getegid(), False, _cache_of_user())


def user_name(uid: int) -> str:
    """Return a user's name; its number where it has none."""
    """Return the name of a user; its number where this machine has no entry of it, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _entry(name: str) -> pwd.struct_passwd:
    entry = _found(name)
    if entry is None:
        raise UsageError(f"`--run-as {name}`: this machine has no such user")
    return entry


def _found(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _sudo_caller() -> pwd.struct_passwd | None:
    uid = os.environ.get("SUDO_UID", "")
    try:
        return pwd.getpwuid(int(uid)) if uid.isdigit() and int(uid) else None
    except KeyError:
        return None


def _cache_of_root() -> Path:
    return Path(os.environ.get("PRONY_CACHE") or "/var/cache/prony").absolute()


def _cache_of_user() -> Path:
    chosen = os.environ.get("PRONY_CACHE")
    if chosen:
        return Path(chosen).absolute()
    # A relative one is to be ignored. *Source*: XDG Base Directory Specification 0.8, Basics.
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else _home() / ".cache") / "prony"


def _home() -> Path:
    """Return the caller's home; where HOME names none, that of the machine's entry.

    *Errors*: HostError when there is neither.
    """
    named = os.environ.get("HOME", "")
    if named.startswith("/"):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        raise HostError(
            f"the user `{os.geteuid()}` has no home folder, and no place for what Prony builds",
            hint="set PRONY_CACHE to a folder that it may write",
        ) from None


# --- what a user can reach --------------------------------------------------------------------------------


_READ, _WRITE, _SEARCH = 4, 2, 1


def first_unreadable(path: Path, user: RunAs) -> Path | None:
    """Return the first folder on the way to ``path``, or ``path`` itself, that ``user`` cannot enter; else
    None.
    """
    if not user.drop:
        return None if os.access(path, os.R_OK) else path
    resolved = path.resolve()
    for parent in reversed(resolved.parents):
        if not may(parent, user, _SEARCH):
            return parent
    wanted = _READ | _SEARCH if resolved.is_dir() else _READ
    return None if may(resolved, user, wanted) else resolved


def may(path: Path, user: RunAs, wanted: int) -> bool:
    """Return whether ``user`` has all permission bits ``wanted`` on ``path``: 4 read, 2 write, 1 execute."""
    try:
        status = path.stat()
    except OSError:
        return False
    mode = stat.S_IMODE(status.st_mode)
    if user.uid == 0:
        return True
    if status.st_uid == user.uid:
        granted = mode >> 6
    elif status.st_gid in {user.gid, *user.groups()}:
        granted = mode >> 3
    else:
        granted = mode
    return granted & wanted == wanted


def refuse_open_cache(user: RunAs) -> None:
    """Refuse a cache that ``user`` could exchange for another one, where Prony is root and owns it.

    *Errors*: HostError.
    """
    cache = user.cache.resolve()
    ours = (one for one in (cache, *cache.parents) if one.exists() and user.drop)
    theirs = next((one for one in ours if _may_exchange(one, user)), None)
    if theirs:
        raise HostError(
            f"servers run as the user `{user.name}`, who can change `{theirs}`, and with it Prony's cache "
            f"`{cache}`",
            hint="choose another place with the environment variable PRONY_CACHE, such as /var/cache/prony",
        )


def _may_exchange(folder: Path, user: RunAs) -> bool:
    status = folder.stat()
    # In a folder like /tmp only its owner exchanges what belongs to others.
    sticky = bool(status.st_mode & stat.S_ISVTX)
    return status.st_uid == user.uid or (not sticky and may(folder, user, _WRITE))
