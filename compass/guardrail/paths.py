"""What a path is: part of the system, a home, a device, a secret, an agent's own configuration, or just a
file."""

import re
from collections.abc import Iterable
from functools import lru_cache

from compass.guardrail.words import BRACKET, QUESTION, SECRET, SELF, STAR, UNKNOWN, known, plain

_TOP = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "media",
    "mnt",
    "nix",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "usr",
    "var",
    "System",
    "Library",
    "Applications",
    "Users",
    "Volumes",
    "private",
    "cores",
    "Windows",
]
_BELOW = {
    "/usr": "bin sbin lib lib32 lib64 libexec local share include src games",
    "/usr/local": "bin sbin lib share include etc libexec",
    "/usr/lib": "modules systemd python3 x86_64-linux-gnu aarch64-linux-gnu firmware locale",
    "/lib": "modules systemd x86_64-linux-gnu aarch64-linux-gnu firmware udev",
    "/var": "lib log cache spool mail db backups local opt run lock www",
    "/var/lib": "dpkg rpm pacman docker containerd systemd mysql postgresql etcd kubelet libvirt",
    "/etc": "ssh ssl pam.d systemd init.d rc.d cron.d security sudoers.d ld.so.conf.d apt network pki "
    "sysconfig profile.d skel alternatives",
    "/boot": "efi grub grub2 loader EFI",
    "/sys": "firmware block class kernel",
    "/private": "etc var",
    "/System": "Library",
    "/Windows": "System32",
}
#: Directories whose recursive loss, or whose wholesale change of mode or owner, breaks the machine.
SYSTEM = frozenset(
    ["/", *(f"/{name}" for name in _TOP), "/sys/firmware/efi", "/sys/firmware/efi/efivars"]
    + [f"{parent}/{name}" for parent, names in _BELOW.items() for name in names.split()]
)
#: Parts of a home that hold what cannot be built again.
_HOME_VITAL = frozenset(
    [
        ".ssh",
        ".gnupg",
        ".aws",
        ".kube",
        ".config",
        ".local",
        ".local/share",
        ".mozilla",
        ".thunderbird",
        ".password-store",
        ".docker",
        ".azure",
        ".config/gcloud",
        "Documents",
        "Desktop",
        "Pictures",
        "Music",
        "Videos",
        "Downloads",
        "Library",
        "Mail",
    ]
)
#: Single files whose loss or change takes the machine, its accounts or its start with it.
CRITICAL = frozenset(
    [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/group",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/fstab",
        "/etc/ld.so.preload",
        "/etc/crypttab",
        "/etc/ld.so.conf",
        "/etc/passwd-",
        "/etc/shadow-",
        "/etc/master.passwd",
        "/etc/securetty",
        "/etc/doas.conf",
    ]
)
_ACCOUNTS = CRITICAL - {"/etc/fstab", "/etc/crypttab", "/etc/ld.so.conf"}
_ACCOUNT_FILES = re.compile(
    r"/etc/sudoers\.d(?:/|$)|/etc/pam\.d/(?:common-auth|system-auth|sshd|sudo|su|login)$"
)
_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root")
_DEVICE = re.compile(
    r"/dev/(?:[shvx]v?d[a-z*?]+\d*|(?:s|h|v|xv|ub|na?)d[a-z]{1,3}\d*|nvme\d.*|mmcblk\d.*|r?disk\d.*|md\d.*|md/.*|"
    r"dm-\d+|mapper/(?!control$).+|disk/.+|bcache\d.*|nbd\d.*|zd\d+.*|zram\d+|pmem\d.*|sr\d+|st\d+|dasd[a-z]+\d*|"
    r"drbd\d.*|rbd\d.*|cciss/.+|ada\d.*|da\d.*|ram\d+|mtd\w+|mem|kmem|port|nvram|block/.+|vg\w*/.+|fd\d+|"
    r"root|hd[a-z*?]+\d*|sg\d+)$"
)
_SECRET_HOME = re.compile(
    r"(?:\.ssh/(?!known_hosts|[^/]*\.pub$)[^/]+|\.ssh$|\.aws(?:$|/credentials|/config|/sso|/cli)|\.netrc$|_netrc$|"
    r"\.git-credentials$|\.config/git/credentials$|\.kube(?:$|/config)|\.docker/config\.json$|\.gnupg(?:$|/.+)|"
    r"\.pypirc$|\.npmrc$|\.yarnrc\.yml$|\.pgpass$|\.my\.cnf$|\.azure(?:$|/.+)|\.config/gcloud(?:$|/.+)|\.boto$|"
    r"\.config/gh/hosts\.yml$|\.config/hub$|\.vault-token$|\.password-store(?:$|/.+)|\.cargo/credentials.*|"
    r"\.gem/credentials$|\.terraform\.d/credentials.*|\.config/rclone/rclone\.conf$|\.s3cfg$|\.htpasswd$|"
    r"\.mozilla/.*(?:logins\.json|key4\.db|cookies\.sqlite)$|\.config/(?:google-chrome|chromium)/.*|"
    r"\.local/share/keyrings(?:$|/.+)|Library/Keychains(?:$|/.+)|\.electrum/.+|\.bitcoin/wallet\.dat$|\.age/.+|"
    r"\.config/sops/.+|\.(?:bash|zsh)_history$|\.anthropic/.+|\.openai/.+|\.claude/\.credentials\.json$|\.codex/auth\.json$)"
)
_SECRET_SYSTEM = re.compile(
    r"/etc/(?:shadow-?|gshadow-?|sudoers(?:\.d(?:/.+)?)?|master\.passwd|ssl/private(?:/.*)?|ssh/ssh_host_\w+_key|"
    r"krb5\.keytab|security/opasswd|kubernetes/.*\.conf|rancher/.*\.yaml|wireguard/.+)$|"
    r"/proc/(?:self|\d+|[^/]*)/environ$|/var/run/secrets/.+|/run/secrets/.+|/var/lib/docker/swarm/.+"
)
_ENV_FILE = re.compile(r"(?:^|/)\.env(?:rc)?(?:\.[\w.-]+)?$")
_ENV_SAMPLE = re.compile(r"(?i)(?:example|sample|template|dist|default|defaults|tmpl|schema|md|d\.ts)$")
_SECRET_NAME = re.compile(
    r"(?:^|/)(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[\w.-]*(?:private|secret|signing)[\w-]*\.(?:key|pem|p12|pfx)|"
    r"server\.key|tls\.key|privkey\.pem|key\.pem|[\w.-]+\.(?:keystore|jks|kdbx|p12|pfx|ppk)|credentials\.json|"
    r"service[-_]account[\w-]*\.json|client_secret[\w-]*\.json|secrets?\.(?:ya?ml|json|toml|env)|"
    r"authorized_keys2?|wallet\.dat|\.git-credentials|\.netrc|\.pgpass|\.htpasswd|\.vault_pass(?:\.txt)?|"
    r"master\.key|credentials\.xml)$"
)
_AGENT = re.compile(
    r"(?:^|/)(?:\.claude/(?:settings[\w.-]*\.json|hooks(?:/.*)?|projects(?:/.*)?|plugins(?:/.*)?)|\.claude\.json|"
    r"\.copperhead/(?:config[\w.-]*|constraints\.json|runs(?:/.*)?|hooks(?:/.*)?|policy[\w.-]*|caps[\w.-]*)|"
    r"\.codex/(?:config[\w.-]*|auth\.json|rules(?:/.*)?|hooks[\w./-]*|sessions(?:/.*)?)|"
    r"\.gemini/(?:settings[\w.-]*|trustedFolders\.json|policies(?:/.*)?)|"
    r"\.cursor/(?:mcp\.json|hooks[\w./-]*|permissions\.json|cli\.json|sandbox\.json)|\.cursorrules|\.mcp\.json|"
    r"\.aider\.conf\.yml|\.continue/config\.\w+|\.config/(?:opencode|goose|claude|crush)/.+|opencode\.jsonc?|"
    r"\.windsurf/(?:mcp_config\.json|hooks\.json)|\.qwen/settings\.json|\.amp/settings\.json|\.clinerules(?:/.*)?|"
    r"\.github/hooks/.+|\.copilot/(?:config|mcp-config)\.json|claude_desktop_config\.json|agent\.json|managed-settings\.json|"
    r"\.git/hooks/[^/]+(?<!\.sample)|\.git/hooks|\.git/config|\.husky/[^/]+|\.pre-commit-config\.yaml|"
    r"\.compass(?:/.*|\.\w+)?|guardrail\.(?:tsv|json|toml|ya?ml)|compass/guardrail(?:/.*)?|"
    r"ledger\.jsonl|results/(?:[^/]+/)*(?:record|verdict|run|ledger|score)s?[\w.-]*\.jsonl?|evidence\.git(?:/.*)?|"
    r"transcripts?(?:[\w.-]*\.jsonl?)|transcripts?/.+\.jsonl?|run-end\.json|pricing\.json|assertions\.(?:json|ya?ml|toml))$"
)
_AGENT_FOLDER = re.compile(
    r"(?:^|/)(?:\.claude|\.copperhead|\.codex|\.gemini|\.cursor|\.husky|\.git/hooks|\.copperhead/runs|\.claude/hooks|"
    r"\.claude/projects|evidence\.git|\.compass)$"
)
#: A copy here is only a copy.
_SCRATCH = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108
_HISTORY = re.compile(r"(?:^|/)\.(?:bash|zsh|sh|ash|ksh|fish)_history$")
_PUBLIC_DEVICE = frozenset(
    [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/stdin",
        "/dev/tty",
        "/dev/random",
        "/dev/urandom",
    ]
)


@lru_cache(maxsize=4096)
def normalise(path: str, cwd: str | None = None) -> str:
    """``path`` made absolute where ``cwd`` is known, without ``.``, ``//``, and ``x/..``; never reads a
    disk."""
    path = known(path)
    if path.startswith("file://"):
        path = path[7:]
    if re.match(r"[A-Za-z]:[\\/]|[A-Za-z]:$", path):
        path = "/" + path[2:].replace("\\", "/").lstrip("/")
    path = path.replace(SELF, "")
    if not path.startswith("/"):
        if cwd is None or path.startswith(UNKNOWN):
            return _collapse(path)
        path = f"{cwd}/{path}"
    return _collapse(path)


def _collapse(path: str) -> str:
    absolute = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if parts and parts[-1] != ".." and not parts[-1].startswith(UNKNOWN):
                parts.pop()
            elif not absolute:
                parts.append("..")
        else:
            parts.append(part)
    joined = "/".join(parts)
    return "/" + joined if absolute else joined or "."


@lru_cache(maxsize=4096)
def _matcher(pattern: str) -> re.Pattern[str]:
    """A glob with marks as a regular expression without backtracking traps (runs of stars are one)."""
    out: list[str] = []
    at = 0
    pattern = re.sub(f"{STAR}+", STAR, pattern)[:200]
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == STAR:
            out.append("[^/]*")
        elif char == QUESTION:
            out.append("[^/]")
        elif char == BRACKET and (close := pattern.find("]", at + 1)) > 0:
            inside = pattern[at:close].replace("\\", "")
            negated = inside[:1] in "!^"
            body = re.escape(inside[1:] if negated else inside).replace(r"\-", "-")
            try:
                re.compile(f"[{body}]")
            except re.error:
                body = re.escape(inside)
            out.append(f"[{'^' if negated else ''}{body}]" if body else "")
            at = close + 1
        else:
            out.append(re.escape(char))
    return re.compile("".join(out) + r"\Z")


def _has_glob(text: str) -> bool:
    return STAR in text or QUESTION in text or BRACKET in text


def _contents(path: str) -> str | None:
    """The directory whose whole contents ``path`` names (``/etc/*``, ``~/.*``, ``/usr/**``), if it names
    one."""
    parent, _, last = path.rpartition("/")
    if not last:
        return None
    bare = last.replace(STAR, "").replace(QUESTION, "")
    if (_has_glob(last) and bare in ("", ".", "..", ".[!.]")) or re.fullmatch(
        rf"\.{BRACKET}[!^]\.\]{STAR}", last
    ):
        return _contents(parent) or parent or ("/" if path.startswith("/") else None)
    return None


def system_directory(path: str) -> str | None:
    """The system directory or home that ``path`` (normalised) is or whose contents it names, for people;
    else None."""
    climbed = re.match(r"(?:\.\./){3,}(?=[^.])", path)
    if climbed:
        path = "/" + path[climbed.end() :]
    whole = _contents(path)
    if whole is not None:
        if whole in ("/tmp", "/var/tmp", "/mnt", "/media", "/srv", "/dev/shm", "/run/lock", "/var/run/lock"):  # noqa: S108
            return None
        return system_directory(whole) or None
    if path in SYSTEM:
        return path
    if path.startswith("//"):
        path = path[1:]
    if path == "/" + UNKNOWN:
        return "/ (the rest may be empty)"
    if re.fullmatch(_HOME, path.replace(UNKNOWN, "user")):
        return plain(path)
    found = _HOME.match(path)
    if found and path[found.end() + 1 :] in _HOME_VITAL:
        return plain(path)
    if _has_glob(path) and path.startswith("/"):
        pattern = _matcher(path)
        for candidate in _candidates(path.count("/")):
            if pattern.match(candidate):
                return candidate
    return None


@lru_cache(maxsize=8)
def _candidates(depth: int) -> tuple[str, ...]:
    homes = ("/home/user", "/root/.ssh", "/home/user/.ssh", "/home/user/Documents")
    return tuple(sorted(p for p in (*SYSTEM, *homes) if p != "/" and p.count("/") == depth))


def critical_file(path: str) -> str | None:
    """A file the machine needs to start or to know its users, if ``path`` (normalised) is one."""
    if path in CRITICAL or re.fullmatch(r"/boot/(?:vmlinuz|initrd|grub/grub\.cfg|grub2/grub\.cfg).*", path):
        return path
    if path.startswith("/etc/sudoers.d/"):
        return path
    if _has_glob(path) and path.startswith("/etc/") and not path.endswith("/" + STAR):
        pattern = _matcher(path)
        return next((name for name in sorted(CRITICAL) if pattern.match(name)), None)
    return None


def accounts_file(path: str) -> bool:
    """Whether writing ``path`` (normalised) changes who may log in or become root."""
    return path in _ACCOUNTS or bool(_ACCOUNT_FILES.match(path))


def device(path: str) -> str | None:
    """The block or memory device that ``path`` (normalised) names, if it does."""
    if not path.startswith("/dev/") or path in _PUBLIC_DEVICE or path.startswith("/dev/loop"):
        return None
    shown = path.replace(UNKNOWN, "a")
    if _has_glob(path):
        shown = plain(shown)
        shown = re.sub(r"\[[^\]]*\]?", "a", shown).replace("?", "a").replace("*", "a")
    return plain(path) if _DEVICE.match(shown) else None


def secret(path: str) -> str | None:
    """What secret ``path`` (normalised, absolute or relative) holds, for people; None if it holds none.

    Public halves, templates (``.env.example``) and ``known_hosts`` are not secrets.
    """
    shown = plain(path).replace("…", "x")
    home = _HOME.match(shown)
    if home and _SECRET_HOME.match(shown[home.end() + 1 :]):
        return shown
    if shown.endswith(".pub"):
        return None
    if not shown.startswith("/") or home:
        inner = re.search(r"(?:^|/)(\.(?:ssh|aws|kube|gnupg|docker|azure|config)(?:/.*)?)$", shown)
        if inner and _SECRET_HOME.match(inner.group(1)):
            return shown
        if re.fullmatch(r"(?:.*/)?\.(?:netrc|pgpass|git-credentials|pypirc)", shown):
            return shown
    if _SECRET_SYSTEM.match(shown):
        return shown
    if _ENV_FILE.search(shown):
        tail = shown.rpartition(".env")[2]
        return None if _ENV_SAMPLE.search(tail) else shown
    if _SECRET_NAME.search(shown):
        return None if _ENV_SAMPLE.search(shown.rpartition("/")[2].split(".")[0]) else shown
    if _has_glob(path) and re.search(r"/\.ssh/|^\.ssh/|/\.aws/", shown) and not shown.endswith(".pub"):
        return shown
    return None


def template(path: str) -> bool:
    """Whether ``path`` is a published template of a secret file (``.env.example``, ``config.sample``)."""
    return bool(_ENV_SAMPLE.search(plain(path)) or re.search(r"(?i)(?:example|sample|template)", plain(path)))


def agent_configuration(path: str, *, whole_folder: bool = False) -> str | None:
    """The agent's or harness's own configuration, hook, transcript, ledger or cap that ``path`` is; else
    None.

    With ``whole_folder`` a folder that holds such files counts too (deleting or moving it takes them along).
    """
    shown = plain(path)
    if path.startswith(_SCRATCH):
        return None
    if _AGENT.search(shown) or _HISTORY.search(shown):
        return shown
    if whole_folder and (_AGENT_FOLDER.search(shown) or shown in ("results", "transcripts")):
        return shown
    if _has_glob(path):
        for known_path in (
            ".git/hooks/pre-commit",
            ".claude/settings.json",
            ".copperhead/config.json",
            ".claude",
        ):
            tail = "/".join(path.split("/")[-known_path.count("/") - 1 :])
            if not tail.startswith(STAR) and _matcher(tail).match(known_path):
                return shown
    return None


def kernel_switch(path: str) -> bool:
    """Whether writing ``path`` (normalised) reboots, crashes or blinds the machine."""
    return bool(
        re.match(r"/proc/sysrq-trigger$|/sys/block/[^/]+/device/delete$|/sys/firmware/efi/efivars/", path)
    )


def any_secret(values: Iterable[str]) -> bool:
    """Whether any value carries text read from a secret."""
    return any(SECRET in value for value in values)
