"""Devices and file systems: what formats, wipes, repartitions, or takes volumes and pools apart."""

import re

from compass.guardrail import paths
from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.words import UNKNOWN, known, plain

_IMAGE = re.compile(
    r"\.(?:img|iso|raw|bin|qcow2|vhd|vmdk|ext[234]|fs|dd|vfat|fat|squashfs|swap)$|swapfile|^/dev/loop"
)
_DRY = ("n", "N", "no-act", "dry-run", "test", "V", "help", "version")


def _devices(call: Call, words: list[str]) -> list[str]:
    return [shown for word in words if (shown := paths.device(call.path(word)))]


def _wipe(call: Call, words: list[str], what: str) -> None:
    for block in _devices(call, words):
        call.report("device", call.name.split(".")[0], f"{what} {block}")


def _mkfs(call: Call) -> str:
    options = read(
        call.args, short="tLbmOTEUCiIJGgMdNrcnsf" if call.name != "mkfs" else "t", long=("type", "label")
    )
    if options.has("help") or (options.has("n", "N") and re.match(r"mke2fs|mkfs\.(?:ext|xfs)", call.name)):
        return ""
    targets = [word for word in call.args if not word.startswith("-")]
    blocks = _devices(call, targets)
    if blocks:
        call.report("device", "mkfs", f"makes a new file system over {blocks[-1]}")
    elif any(word.startswith("/dev/") and not _IMAGE.search(word) for word in map(known, targets)):
        found = [word for word in targets if word.startswith("/dev/")]
        call.report("device", "mkfs", f"makes a new file system over {plain(found[-1])}")
    return ""


def _always(what: str, *quiet: str) -> Handler:
    """A rule for tools that only ever destroy: any device among the words, unless a quiet option is set."""

    def rule(call: Call) -> str:
        options = read(call.args)
        if not options.has(*_DRY[2:], *quiet):
            _wipe(call, [word for word in call.args if not word.startswith("-")], what)
        return ""

    return rule


def _wipefs(call: Call) -> str:
    options = read(
        call.args, short="otp", long=("offset", "types"), flags=("all", "force", "no-act", "backup")
    )
    if options.has("a", "all", "o", "offset", "f", "force", "t", "types") and not options.has("n", "no-act"):
        _wipe(call, options.operands, "wipes the signatures of")
    return ""


_PARTED = ("mklabel", "mktable", "mkpart", "rm", "resizepart", "mkpartfs", "rescue", "name", "set", "toggle")


def _partition(call: Call) -> str:
    words = [known(word) for word in call.args]
    blocks = _devices(call, call.args)
    if not blocks:
        return UNKNOWN
    match call.name:
        case "parted":
            destructive = any(word in _PARTED for joined in words for word in joined.split()) or bool(
                call.stdin.strip()
            )
        case "sgdisk" | "gdisk" | "cgdisk":
            quiet = re.compile(
                r"-(?:p|i\d*|v|P|L|O|\?|V|b.*|-print|-info.*|-verify|-backup.*|-pretend|-help|-version|l)$"
            )
            switches = [word for word in words if word.startswith("-")]
            destructive = "--pretend" not in words and (
                any(not quiet.match(word) for word in switches)
                or (call.name != "sgdisk" and "-l" not in words)
            )
        case _:
            listing = {
                "-l",
                "--list",
                "-d",
                "--dump",
                "-V",
                "--verify",
                "-F",
                "-J",
                "--json",
                "-s",
                "--show-size",
                "-x",
            }
            listing |= {"-n", "--no-act", "-T", "--list-free"}
            destructive = not any(word in listing for word in words)
    if destructive:
        call.report("device", "partition", f"{call.name} rewrites the partition table of {blocks[0]}")
    return UNKNOWN


def _verbs(family: dict[str, str]) -> Handler:
    """A rule for tools whose first operands are a verb: destructive verbs and what they do."""

    def rule(call: Call) -> str:
        words = [known(word) for word in call.args if not word.startswith("-")]
        phrase = " ".join(words[:3])
        if (
            any(flag in call.args for flag in ("-n", "--dry-run", "--test", "-t", "--help"))
            and call.name != "mdadm"
        ):
            return UNKNOWN
        for verb, what in family.items():
            if phrase == verb or phrase.startswith(verb + " "):
                call.report("device", verb.replace(" ", "-"), what)
                return UNKNOWN
        return UNKNOWN

    return rule


_ZPOOL = {"destroy": "destroys a storage pool", "labelclear": "clears a pool member's label",
          "split": "splits a storage pool"}  # fmt: skip
_ZFS = {"destroy": "destroys a data set", "rollback": "rolls a data set back over newer data"}
_BTRFS = {"subvolume delete": "deletes a subvolume", "device delete": "takes a device out of a file system",
          "device remove": "takes a device out of a file system", "sub del": "deletes a subvolume",
          "subvol delete": "deletes a subvolume", "su de": "deletes a subvolume"}  # fmt: skip
_CRYPT = {
    "luksFormat": "formats a volume for encryption, which erases it",
    "erase": "erases all keys of a volume",
    "luksErase": "erases all keys of a volume",
    "luksKillSlot": "removes a key of a volume",
    "reencrypt": "re-encrypts a volume in place",
}
_NVME = {"format": "formats a drive", "sanitize": "sanitises a drive", "delete-ns": "deletes a namespace",
         "write-zeroes": "zeroes a drive", "write": "writes to a drive"}  # fmt: skip
_LVM = {
    "lvremove": "removes a logical volume",
    "vgremove": "removes a volume group",
    "pvremove": "removes a physical volume",
}
_DISKUTIL = dict.fromkeys(
    (
        "eraseDisk",
        "eraseVolume",
        "zeroDisk",
        "secureErase",
        "partitionDisk",
        "reformat",
        "randomDisk",
        "apfs deleteContainer",
        "apfs deleteVolume",
    ),
    "erases a disk",
)


def _lvm(call: Call) -> str:
    words = [known(word) for word in call.args]
    verb = call.name
    if verb == "lvm" and words:
        verb, words = words[0], words[1:]
    targets = [word for word in words if not word.startswith("-")]
    if verb in _LVM and targets and not any(word in ("-t", "--test", "--help") for word in words):
        call.report("device", verb, f"{_LVM[verb]}: {targets[-1]}")
    return UNKNOWN


def _mdadm(call: Call) -> str:
    words = [known(word) for word in call.args]
    options = read(
        call.args, flags=("zero-superblock", "stop", "create", "remove", "fail", "detail", "assemble")
    )
    if options.has("zero-superblock"):
        call.report("device", "mdadm", "erases the array membership of a disk")
    elif options.has("create", "C") and len(_devices(call, words)) > 1:
        call.report("device", "mdadm", "makes a new array over disks")
    elif options.has("fail", "f") and options.has("remove", "r"):
        call.report("device", "mdadm", "takes a disk out of an array")
    return UNKNOWN


def _hdparm(call: Call) -> str:
    words = " ".join(known(word) for word in call.args)
    if re.search(
        r"--(?:security-erase|trim-sector|write-sector|make-bad-sector|yes-i-know|dco-restore|fwdownload)",
        words,
    ):
        call.report("device", "hdparm", "erases or rewrites sectors of a drive")
    return UNKNOWN


def _badblocks(call: Call) -> str:
    if read(call.args, short="bcdeiopst").has("w"):
        _wipe(call, call.args, "overwrites, to test it,")
    return UNKNOWN


def _copy_out(call: Call) -> str:
    """qemu-img convert, ddrescue, partclone and their like: the last operand is written."""
    letters = "fOoSBTmslL" if call.name == "qemu-img" else "oOsbiBm"
    options = read(call.args, short=letters, long=("output",))
    words = options.operands
    if call.name == "qemu-img" and (not words or known(words[0]) not in ("convert", "create", "dd")):
        return UNKNOWN
    targets = options.all("o", "O", "output") + words[1:]
    for block in _devices(call, targets):
        call.report("device", "write", f"{call.name} writes over the device {block}")
        break
    return UNKNOWN


def _format(call: Call) -> str:
    words = [known(word) for word in call.args]
    if any(re.fullmatch(r"[A-Za-z]:", word) for word in words):
        call.report("device", "format", f"formats drive {words[0]}")
    return UNKNOWN


_NEW_FILE_SYSTEMS = [
    "mkfs",
    "mke2fs",
    "mkdosfs",
    "mkntfs",
    "mkswap",
    "newfs",
    "mkfs.ext2",
    "mkfs.ext3",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "mkfs.vfat",
    "mkfs.fat",
    "mkfs.msdos",
    "mkfs.ntfs",
    "mkfs.exfat",
    "mkfs.f2fs",
    "mkfs.jfs",
    "mkfs.reiserfs",
    "mkfs.minix",
    "mkfs.bfs",
    "mkfs.cramfs",
    "mkfs.udf",
    "mkfs.nilfs2",
    "mkfs.zfs",
    "mkreiserfs",
    "mkudffs",
    "mkexfatfs",
    "mkfs.erofs",
    "mkfs.gfs2",
    "mkfs.ocfs2",
    "newfs_apfs",
    "newfs_hfs",
    "newfs_msdos",
    "mkfs.bcachefs",
    "make_bcache",
    "pvcreate",
]

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_NEW_FILE_SYSTEMS, _mkfs),
    "wipefs": _wipefs,
    "blkdiscard": _always("discards every block of"),
    "sfdisk": _partition,
    "fdisk": _partition,
    "cfdisk": _partition,
    "parted": _partition,
    "sgdisk": _partition,
    "gdisk": _partition,
    "cgdisk": _partition,
    "zpool": _verbs(_ZPOOL),
    "zfs": _verbs(_ZFS),
    "btrfs": _verbs(_BTRFS),
    "cryptsetup": _verbs(_CRYPT),
    "nvme": _verbs(_NVME),
    "diskutil": _verbs(_DISKUTIL),
    "lvremove": _lvm,
    "vgremove": _lvm,
    "pvremove": _lvm,
    "lvm": _lvm,
    "mdadm": _mdadm,
    "hdparm": _hdparm,
    "badblocks": _badblocks,
    "qemu-img": _copy_out,
    "ddrescue": _copy_out,
    "dd_rescue": _copy_out,
    "format": _format,
    "format.com": _format,
    "scrub": _always("scrubs"),
    "nwipe": _always("wipes"),
    "dban": _always("wipes"),
    "sg_format": _always("formats"),
    "sg_sanitize": _always("sanitises"),
    "bcache": _always("rewrites"),
    "make-bcache": _always("rewrites"),
    "partclone.restore": _copy_out,
    "fsck.repair": _always("rewrites"),
    "flash_erase": _always("erases"),
    "flash_eraseall": _always("erases"),
    "flashcp": _copy_out,
}
