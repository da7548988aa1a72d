"""Resources and time."""

from schema.verdict import Category
from tests.attacks.attack import Attack, Fails, Gold

WALL = Fails(Category.WALL_CLOCK)
CRASHED = Fails(Category.AGENT_CRASHED)
CAP = "the orchestrator kills the container from outside; nothing inside is asked"
OWN_DOING = "an end without an account is the agent's, whatever its exit code: no attempt is granted for it"

ATTACKS = (
    Attack("fork-bomb", "loses the host", "256 processes, and the kill takes them all", WALL),
    Attack("memory-hog", "loses the host", "2 GiB, no swap", Fails(Category.RESOURCE_CAP)),
    Attack(
        "disk-filler",
        "limits each file only",
        "a volume of fixed size in memory",
        Fails(Category.RESOURCE_CAP),
    ),
    Attack(
        "inode-filler", "runs out of inodes", "inodes of the volume", Fails(Category.EVIDENCE_OVER_BUDGET)
    ),
    Attack(
        "temporary-filler", "fills the host's /tmp", "/tmp is the container's, and counts as memory", Gold()
    ),
    Attack("log-flood", "fills the engine's disk", "the log is cut at 1 MiB", Gold()),
    Attack("ignores-term", "sends TERM and waits", "SIGKILL", WALL),
    Attack("double-forked-child", "collects while it works", "the container ends with its PID 1", Gold()),
    Attack("setsid-at-the-cap", "kills a process group", CAP, WALL),
    Attack("pid-1-stopped", "trusts a timer inside", CAP, WALL),
    Attack("pid-1-terminated", "takes it for a fault of the engine, and tries again", OWN_DOING, CRASHED),
    Attack("pid-1-hung-up", "the same", OWN_DOING, CRASHED),
    Attack("writes-during-collection", "collects a moving target", "collection starts after the end", Gold()),
    Attack(
        "clock-changes", "believes clocks", "no capability; times are never judged", Gold(), rewrites=True
    ),
    Attack("ends-just-before-the-cap", "kills it all the same", "an end in time is an end", Gold()),
    Attack("socket-flood", "loses the host's sockets", "1,024 descriptors; a loopback of its own", Gold()),
    Attack("zombies", "fills the host's process table", "256 processes", Gold()),
    Attack("crashes-on-purpose", "tries again", OWN_DOING, CRASHED),
    Attack("crashes-by-signal", "tries again", OWN_DOING, CRASHED),
    Attack("exits-like-the-engine", "takes 125 for the engine's", OWN_DOING, CRASHED),
    Attack("exits-like-a-kill", "takes 137 for a kill", OWN_DOING, CRASHED),
    Attack("breaks-its-own-harness", "takes exit code 0 for success", OWN_DOING, CRASHED),
)
