"""Git as a weapon."""

from schema.verdict import Category
from tests.attacks.attack import Attack, Fails, Gold

COPIED = "only HEAD, refs and objects are copied; git reads them in a clean repository without configuration"
COMMIT = Category.COMMIT_FAILED
VIOLATION = Category.CONSTRAINT_VIOLATION

ATTACKS = (
    Attack("hooks", "runs git in the workspace", COPIED, Gold()),
    Attack("fsmonitor", "runs git status in the workspace", COPIED, Gold()),
    Attack("external-diff", "runs git diff in the workspace", COPIED, Gold()),
    Attack("filters", "runs git add or checkout on the workspace", COPIED, Gold()),
    Attack("pager-and-helpers", "runs git log in the workspace", COPIED, Gold()),
    Attack("include-paths", "reads the workspace's configuration", COPIED, Gold()),
    Attack("aliases", "calls git by the workspace's names", COPIED, Gold()),
    Attack("other-worktree", "lets the repository say where its files are", COPIED, Gold()),
    Attack("git-file-elsewhere", "follows gitdir", "a .git that is no folder is no history", Fails(COMMIT)),
    Attack("git-symlink", "follows the link", "a .git that is no folder is no history", Fails(COMMIT)),
    Attack("alternates-to-the-host", "borrows objects of its own disk", COPIED, Gold()),
    Attack("objects-elsewhere", "finds them, or crashes", "objects missing: no history", Fails(COMMIT)),
    Attack(
        "submodules", "updates submodules", "submodules are files like others", Fails(VIOLATION, "gitmodules")
    ),
    Attack(
        "bare-repository-below", "runs git in a folder of the workspace", COPIED, Fails(VIOLATION, "below")
    ),
    Attack(
        "disguised-git-folders",
        "writes them into a repository of its own",
        "names are percent-encoded in the evidence store",
        Fails(VIOLATION, ".GIT"),
    ),
    Attack("head-climbs", "reads the file that HEAD names", "HEAD is matched, never opened", Fails(COMMIT)),
    Attack("refs-as-options", "passes a branch's name to git", "git is given commit ids", Fails(COMMIT)),
    Attack("index-damaged", "fails on the index", COPIED, Gold()),
    Attack("packed-refs-flood", "reads every ref", "one name is looked for, in one pass", Gold()),
    Attack("commit-flood", "lists them all", "counting stops at a thousand", Fails(COMMIT)),
    Attack("object-bomb", "inflates it", "git reads with limits of memory and time", Fails(COMMIT)),
    Attack(
        "object-damaged",
        "crashes, at each rerun again",
        "a repository is read or unreadable, never a crash",
        Fails(COMMIT, "damaged"),
    ),
    Attack("commit-without-a-tree", "counts it", "every counted commit is walked", Fails(COMMIT, "damaged")),
    Attack(
        "delta-bombs",
        "gives each of them its time",
        "sixteen packs, and one deadline for all of git",
        Fails(COMMIT, "packs"),
    ),
    Attack("pack-damaged", "crashes", "an unreadable pack is left out", Gold()),
    Attack("objects-on-a-side-branch", "holds them against the run", "HEAD's commits count", Gold()),
)
