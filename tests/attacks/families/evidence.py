"""Attacking collector and grader."""

from schema.verdict import Category
from tests.attacks.attack import Attack, Fails, Gold

VIOLATION = Category.CONSTRAINT_VIOLATION
OVER = Category.EVIDENCE_OVER_BUDGET
TAMPERED = Category.EVIDENCE_TAMPERED
WRONG = Category.WRONG_TARGET
REFUSE = "refuse-clock-pullup"

STREAM = "one tar stream, read entry by entry under budgets; nothing is unpacked"
BOUNDED = "JSON is bounded in size, depth and numbers, and strict about keys"
SEXPR = "one linear pass with limits of size, depth and text before KiCad sees a file"
TABLES = "block rules only, linear; bounded in bytes and rows"
ONE_LINE = "quoted text is one bounded printable line, and cleaned again where it is shown"

ATTACKS = (
    Attack("symlinks-out", "unpacks and follows", "links are kept as text", Fails(TAMPERED, "climbs out")),
    Attack("symlink-loops", "walks for ever", "links are kept as text", Gold()),
    Attack("hard-link-before-the-document", "reads the document as emptied", "a link is a copy", Gold()),
    Attack(
        "hard-links-out", "reads its own files as the agent's", "another file system: no link is made", Gold()
    ),
    Attack(
        "pipes",
        "opens it and waits for ever",
        "refused, recorded, counted as added; what was not kept could not be searched for credentials",
        Fails(Category.EVIDENCE_TAMPERED, "named pipe"),
    ),
    Attack("socket-files", "fails", "the engine leaves sockets out", Gold()),
    Attack("devices", "reads without end", "no capability to make one", Gold()),
    Attack("set-uid", "unpacks it as root", "modes are text, and a change of mode", Fails(VIOLATION, "mode")),
    # The follower may look twice before the container's end is known, and then the transcript was hidden.
    Attack("unreadable", "calls them missing", "the engine reads as root", Gold(), rewrites=True),
    Attack("sparse-terabyte", "fills its disk", "a budget of streamed bytes", Fails(OVER, "bytes")),
    Attack(
        "million-files",
        "runs out of inodes or time",
        "a budget of entries, inodes of the volume",
        Fails(OVER),
    ),
    Attack("deep-folders", "overflows its stack or path", "a budget of depth", Fails(OVER, "deep")),
    Attack("long-path", "fails to make the path", "a budget of bytes of a path", Fails(OVER, "path")),
    Attack(
        "odd-names", "decodes, splits, globs or executes them", "names are bytes, percent-encoded", Gold()
    ),
    Attack("encoded-twins", "two names become one", "percent signs are encoded too", Gold()),
    Attack("tar-in-names", "takes a name or content for a header", STREAM, Gold()),
    Attack("json-depth", "overflows its stack", BOUNDED, Fails(TAMPERED, "nested deeper")),
    Attack("json-size", "reads it whole, or to its end", BOUNDED, Fails(OVER, "bytes")),
    Attack("json-lines", "keeps an object a line", BOUNDED, Fails(OVER, "lines")),
    Attack("json-long-line", "reads lines of any length", BOUNDED, Fails(OVER, "line")),
    Attack("json-duplicate-keys", "lets the last key win", BOUNDED, Fails(TAMPERED, "twice")),
    Attack("json-not-a-number", "accepts what is no JSON", BOUNDED, Fails(TAMPERED, "NaN")),
    Attack("json-huge-integer", "converts it, in quadratic time", BOUNDED, Fails(TAMPERED, "out of range")),
    Attack(
        "json-lone-surrogate",
        "crashes when it writes the record",
        "allowed, and spelled out when quoted",
        Gold(),
        rewrites=True,
    ),
    Attack("json-not-utf8", "decodes with replacement", BOUNDED, Fails(TAMPERED)),
    Attack("registry-bomb", "overflows its stack", BOUNDED, Fails(VIOLATION), REFUSE),
    Attack("project-huge-numbers", "hands infinity to KiCad", BOUNDED, Fails(WRONG, "out of range")),
    Attack("sexpr-depth", "overflows its stack", SEXPR, Fails(WRONG, "nested deeper")),
    Attack("sexpr-unterminated", "backtracks", SEXPR, Fails(WRONG, "without an end")),
    Attack("sexpr-size", "builds a tree of it", SEXPR, Fails(WRONG, "larger")),
    Attack("sexpr-long-text", "copies it around", SEXPR, Fails(WRONG, "Failed to load")),
    Attack("sexpr-huge-numbers", "crashes with KiCad", "what KiCad cannot load fails", Fails(WRONG)),
    Attack(
        "sheet-fan-out", "instantiates a million sheets", "a limit of sheets before KiCad runs", Fails(WRONG)
    ),
    Attack(
        "kicad-memory",
        "lets kicad-cli take the machine",
        "buses are counted before KiCad runs, and it has limits of memory and time",
        Fails(WRONG, "buses of more than"),
    ),
    Attack(
        "kicad-memory-by-a-variable",
        "reads the label as written",
        "a new label with a variable fails before KiCad resolves it",
        Fails(WRONG, "holds a variable"),
    ),
    Attack("kicad-crash", "takes no report for a clean one", "no output, no pass", Fails(WRONG)),
    Attack(
        "kicad-variables",
        "waits for text that doubles forty times",
        "kicad-cli has limits of memory and time",
        Fails(Category.OBLIGATION_OPEN, "unresolved_variable"),
    ),
    Attack("regex-bait", "backtracks for ever", "RE2: linear in the text", Gold()),
    Attack("table-rows", "takes minutes", TABLES, Fails(WRONG, "rows")),
    Attack("table-columns", "fills cells without end", TABLES, Gold()),
    Attack("markdown-nesting", "overflows its stack", TABLES, Gold()),
    Attack("document-size", "reads documents of any size", TABLES, Fails(WRONG, "bytes")),
    Attack("diff-bomb", "takes quadratic time", "git counts under a limit of time", Fails(WRONG)),
    Attack(
        "shell-parser-bomb",
        "hangs in its own parser",
        "bounded calls and characters, linear parser",
        Gold(),
        rewrites=True,
    ),
    Attack(
        "orders-in-results",
        "lets a model grade",
        "no model grades; the orders are named in the record",
        Gold(),
        rewrites=True,
    ),
    Attack("hostile-words-in-the-summary", "prints them", ONE_LINE, Fails(WRONG), REFUSE),
    Attack("hostile-words-in-names", "prints them", ONE_LINE, Fails(VIOLATION)),
    Attack("hostile-words-in-the-design", "prints them", ONE_LINE, Fails(WRONG)),
    Attack("hostile-words-in-the-transcript", "prints them", ONE_LINE, Fails(TAMPERED)),
    Attack(
        "hostile-words-on-standard-output",
        "shows the agent's output",
        "kept aside, bounded, never shown",
        Gold(),
    ),
    Attack("input-rewritten", "reads its inputs again", "inputs go in, nothing of them comes out", Gold()),
)
