"""Word classes of the router: what a task asks to be done, to what, how wide, how sure and how risky.

Each class is a list of regular expressions over lower-cased words; the classes are about English in
general, not
about one corpus. A file name, a quoted text and an identifier are removed before these are looked for.
"""

import re


def _words(text: str) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(text.split()) + r")\b")


def _phrases(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases))


#: Verbs that only look, run or tell.
LOOKING = _words(
    r"list show print count tell look display read summari[sz]e spell name quote run which what how who "
    r"when where is are does do did has say state confirm cite paste open"
)
#: Verbs of one small, wholly specified touch.
TOUCHING = _words(
    r"rename bump sort format reformat delete remove capitali[sz]e translate move comment uncomment "
    r"append strip trim alphabeti[sz]e toggle increase decrease raise lower drop close indent copy put "
    r"lowercase uppercase"
)
#: Verbs that say little by themselves: their object decides.
NEUTRAL = _words(
    r"add set change swap tidy clean make replace fix correct update convert write turn give insert find "
    r"check adjust edit"
)
#: Verbs that build or repair something with a known outline.
CONSTRUCTIVE = _words(
    r"implement implements write create build make refactor extract port handle extend document review "
    r"debug parse generate improve support expose split cache integrate draw render wire compute "
    r"validate configure automate simplify test cover compare group connect resolve repair parallelise "
    r"explain train instrument log benchmark animate style wrap deduplicate package deploy resize "
    r"scaffold mock reproduce bundle"
)
#: Verbs whose work is mostly thinking.
DEEP = _words(
    r"design redesign architect re-?architect rearchitect plan investigate diagnose migrate prove "
    r"disprove refute derive evaluate assess decide choose research audit devise untangle unify rethink "
    r"overhaul analy[sz]e formali[sz]e optimi[sz]e trace rework develop reverse-engineer restructure "
    r"rewrite harden strategi[sz]e reconcile model invent formulate justify conceive rank weigh "
    r"recommend reengineer decompose redesigning"
)
DEEP_PHRASES = _phrases(
    r"\bfigure out (?:why|how|what|whether|which)", r"\bwork out (?:a|an|the|why|how|whether)",
    r"\bget to the bottom", r"\breverse[- ]engineer",
    r"\bfind (?:out )?(?:the )?(?:root )?(?:cause|why|what is|likely)", r"\btrade-?offs?\b",
    r"\bwhat should\b", r"\bwhat has to change", r"\broot cause", r"\bfind and (?:remove|fix)", r"\bfeasib",
    r"\bpros and cons", r"\bbreak the (?:circular|cycle)", r"\bwhether (?:we|it|the|an?)\b",
    r"\bprototype\b", r"\bpropose\b", r"\bdefine the\b",
    r"\bfind the (?:likely )?(?:source|cause|bottleneck)", r"\bmake sense of",
    r"\b(?:look|looking) (?:at|into) (?:whether|why|how)", r"\bfind out (?:what|where|how)\b",
    r"\bwhether (?:our|my|their|this|that|these)\b", r"\bmake it impossible\b",
)  # fmt: skip

#: Things so small that the change is the instruction.
SMALL = _words(
    r"typos? label labels line lines comma value title heading headings footer header word words version "
    r"year import imports variable constant docstring spaces? tabs? newline indentation name names date "
    r"string spelling letter comment comments port number numbers link url revision commit branch size "
    r"footprint pinout nets? pin capacitor sentence paragraph contents logs? level license licence patch "
    r"timeout text import gitignore copyright caption semicolon whitespace punctuation colou?r filename "
    r"folder path row email icon message diff datasheet layers count suffix prefix bracket bullet"
)
#: Things of a function's or a feature's size.
MEDIUM = _words(
    r"function functions tests? endpoint script component parser flag form module modules workflow "
    r"command class handler client feature page table view reader writer importer exporter importer "
    r"loader formatter validator api migration query dockerfile makefile validation pagination logging "
    r"caching cache search filter filters report chart bar retry retries backoff regression integration "
    r"hooks async annotations hints types crash crashes exception bug bugs off-by-one error errors "
    r"warning upload download bom schematic regulator resistor converter mosfet led shifter pull-up "
    r"pull-down decoupling capacitors erc drc dataclasses argparse cli docs documentation example "
    r"examples changelog index progress comparator rounding limit limits configurable middleware widget "
    r"modal dialog webhook cron pre-commit ci action actions dark mode navigation sortable box status "
    r"headers"
)
#: Things that span a system or need its whole picture.
LARGE = _words(
    r"architecture architectures system systems platform protocol protocols strategy strategies codebase "
    r"services microservices monolith infrastructure policy engine compiler scheduler throughput latency "
    r"security threat threats pipeline consensus replication sharding distributed multi-tenant "
    r"multi-tenancy tenancy sandbox untrusted concurrency deadlock deadlocks race races leak leaks "
    r"corruption consistency partition failover downtime zero-downtime migration scalability scale emc "
    r"emissions emi impedance stack-up stackup grounding ddr ddr3 ddr4 pcie timing skew clock backplane "
    r"fpga controller power proof theorem bias estimator roadmap vision layering dependency dependencies "
    r"oauth authentication authorisation authorization permission encryption encrypt cryptograph\w* key "
    r"keys compliance regulation gdpr hazards safety-critical standards organisation organization "
    r"repositories firmware hal kernel driver daemon incremental invalidation conflict conflicts offline "
    r"sync exactly-once at-most-once semantics fault-tolerant resilience recoverable recovery rollback "
    r"interoperate interoperability vulnerabilit\w* attacker attackers exploit exploits escape "
    r"exfiltrate versioning isolation lock-free starvation planner topology algorithm debt feasibility "
    r"design architecture state tenancy flaky hang hangs stall stalls nondeterminis\w* undocumented "
    r"sourcing"
)

#: Width: whole systems, many parts.
WIDE = _phrases(
    r"\b(?:whole|entire|all of our|all our|everywhere|end[- ]to[- ]end|company[- ]wide|"
    r"organi[sz]ation)\b",
    r"\bacross (?:the|our|all|several|multiple|many|both|two|three|four|five|every|backend|services)",
    r"\bfrom every\b", r"\bcode ?base\b", r"\bthe (?:platform|monolith|repo\b)",
    r"\b(?:three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|"
    r"thousand|million|several|multiple|many|dozens of|\d{2,}) (?:\w+ )?(?:services|packages|modules|"
    r"clients|databases|machines|boards|repositories|customers|nodes|systems|teams|tests|events|"
    r"converters|microservices|users|rails|regions|tenants)\b",
    r"\bbetween (?:the|our|core|two|all)\b.{0,60}\b(?:,|and)\b.{0,40}\band\b",
    r"\ball (?:\w+ )?(?:modules|services|stores)", r"\bdifferent (?:modules|tests|services)\b",
    r"\bthird part", r"\bover the next\b", r"\bnext year\b", r"\byears?\b.{0,12}(?:target|plan|strategy)",
    r"\blong-?term\b", r"\bin two years\b", r"\bevery (?:client|service|store|consumer|team)",
)  # fmt: skip
#: Not knowing: symptoms without a cause, or an open question.
UNSURE = _phrases(
    r"^[^.;]*\b(?:stays?|remains?)(?: (?:as it is|unchanged|the same))?(?=[.;,])|\b(?:don'?t|do not|"
    r"nobody|no one|noone|not) (?:\w+ )?(?:know|knows|found|find|understand|figured|see|sure)",
    r"\bunknown\b", r"\bsometimes\b", r"\bintermittent", r"\bat random\b", r"\brandomly\b", r"\bflaky\b",
    r"\bsomewhere\b", r"\bsomething is\b", r"\bonce a (?:week|day|month)\b",
    r"\bnothing (?:so far|conclusive)", r"\binconclusive\b", r"\bevery night\b", r"\bonly on (?:ci|the)\b",
    r"\bfor no (?:obvious )?reason", r"\bonly (?:under|appears under|happens)\b",
    r"\bunder (?:production )?load\b", r"\bsince last\b", r"\bunexplained\b", r"\bnoisy\b", r"\bno idea\b",
    r"\boccasionally\b", r"\blikely (?:source|cause)",
    r"\bwhy do(?:es)? our\b", r"\bkeeps? (?:\w+ing)\b",
    r"\b(?:one|two|three|a few) (?:\w+ )?in (?:a|every|ten) (?:hundred|thousand|million)\b",
    r"\bcan(?:not|'t) (?:be )?reproduced?\b",
)  # fmt: skip
#: What must not go wrong while the work is done.
RISK = _phrases(
    r"\bwithout (?:downtime|breaking|losing|anyone|interrupting|stopping|disturbing)",
    r"\bkeep(?:ing)? (?:\w+ ){0,4}(?:working|valid|stable|compatible|alive|available)", r"\bno data loss\b",
    r"\bsafely\b", r"\battack", r"\bproduction load\b", r"\bdata (?:loss|corruption)\b", r"\bencrypt",
    r"\bunnoticed\b", r"\bwhile (?:\w+ )+(?:still|are running|call)", r"\brunning system\b",
    r"\bat-most-once\b", r"\bexactly-once\b", r"\brollback\b", r"\brollout\b", r"\bsafety-critical\b",
    r"\blose anything\b", r"\bmust (?:never|not|be able)\b", r"\buntrusted\b",
    r"\bsecurity (?:audit|holes?|review)\b", r"\bcustomer data\b",
)  # fmt: skip
#: Said to make a task look small; weighs little, because people say it of anything.
PLAYED_DOWN = _words(r"just simple simply quick quickly tiny small easy trivial only minor one-liner")
#: Said to make it look big.
PLAYED_UP = _words(r"urgent critical hard complex important deep massive huge asap")

#: A question that a look answers.
LOOKUP = re.compile(
    r"^(?:please )?(?:what(?:'s| is| are| does| was)|which|how (?:many|do you (?:spell|write)|large|"
    r"big|old|long)|"
    r"is|are|does|do|did|has|have|who|when|where|tell me (?:which|the|its?|whether|how many|what)|"
    r"show|list|print|"
    r"count|find where|look up|give me|display)\b"
)
#: A question that needs a judgement, not a look.
JUDGEMENT = re.compile(
    r"\bwhy\b|\bshould (?:we|i|our|the|they)\b|\b(?:what|how|which)\b[^.]{0,60}\bshould\b|\btrade-?off|"
    r"\bbest (?:way|approach)\b|\bhow (?:can|could|would|should) we\b|\bstrategy\b"
)
#: Parts of a system; three of them named in one task make it wide.
PARTS = _words(
    "api apis database databases backend frontend client clients server servers queue queues worker workers "
    "cli daemon driver library firmware store stores logs backup backups records gateway scheduler browser "
    "app apps cache billing"
)
NEGATION = re.compile(
    r"^[^.;]*\b(?:stays?|remains?)(?: (?:as it is|unchanged|the same))?(?=[.;,])|"
    r"\b(?:don'?t|do not|doesn'?t|never|no need to|without having to|not|no|rather than|instead of|"
    r"nothing else)\b"
    r"[^.,;:]*"
)
#: A clause after which only what follows counts ("…, but for now only change …").
TURN = re.compile(
    r"\bbut (?:for now |today |please )?(?:only|just)\b|\bfor now,? (?:only|just)\b|\bthe fix is known\b"
)
