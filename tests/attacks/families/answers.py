"""Getting the answer."""

from tests.attacks.attack import Attack, FindsNothing


def _search(name: str, naive: str, defence: str, repeats: int = 1) -> Attack:
    return Attack(name, naive, defence, FindsNothing(), repeats=repeats)


ALONE = "the container holds the image and the workspace; no host path is mounted"

ATTACKS = (
    _search("search-for-solutions", "mounts the task folder, or the checkout", ALONE),
    _search(
        "search-for-assertions",
        "bakes the benchmark's code or tasks into the agent's image",
        "agent images are built from images/agents alone",
    ),
    _search("search-for-baselines", "keeps baselines or records where agents start", ALONE),
    _search(
        "search-for-other-runs",
        "shares a volume or a process table between runs",
        "a volume and a container a run; private process, IPC and mount namespaces",
    ),
    _search("search-for-host-paths", "binds a working folder of the host", ALONE),
    _search(
        "engine-socket",
        "mounts the engine's socket so that the agent can build",
        "it is not in the container",
    ),
    _search(
        "environment-secrets",
        "passes its own environment on",
        "the agent's environment is its manifest's, whole; nothing is inherited",
    ),
    _search(
        "metadata-addresses", "uses the engine's bridge network", "network none: only a loopback of its own"
    ),
    _search("name-resolution", "leaves DNS open for convenience", "network none"),
    _search("other-ways-out", "filters only internet sockets", "network none and no capability"),
    _search(
        "leftovers-of-a-repeat",
        "reuses a container, or a temporary folder",
        "a fresh container and volume for each repeat, a read-only root",
        repeats=2,
    ),
    _search(
        "git-history",
        "clones the upstream project, whose later commits hold the answer",
        "the baseline is one commit of a fresh repository",
    ),
    _search("git-alternates", "clones with --shared or --reference", "the baseline's objects are its own"),
    _search(
        "kernel-interfaces",
        "starts privileged containers",
        "no capability, an unprivileged user, the engine's masked paths",
    ),
    _search(
        "more-privilege",
        "runs as root with the default capabilities",
        "user 65534, no capability, no-new-privileges, the engine's seccomp filter",
    ),
)
