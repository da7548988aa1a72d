"""Rules over markup that word classes cannot see: role markers, fake results, addresses that carry data."""

from collections.abc import Iterator, MutableMapping
from typing import NamedTuple

from compass.redteam import linear
from compass.redteam.rules import TOLERATED


class Hit(NamedTuple):
    """A match in one reading of a text, half open."""

    rule: str
    family: str
    why: str
    start: int
    end: int


_LEAK = (
    r"(?:secret|key|token|password|data|history|conversation|prompt|env|context|memory|content|chat|b64"
    r"|encoded)"
)

_RULES: tuple[tuple[str, str, str, str], ...] = (
    (
        "chat-token",
        "role-tags",
        "carries a chat template's role token",
        r"(?i)<\|(?:im_start|start_header_id|start)\|>\s*(?:system|user|assistant|developer|tool)"
        r"|<\|(?:im_end|eot_id|end)\|>\s*<\||<\|(?:system|assistant|user|developer)\|>\s*\S",
    ),
    (
        "instruction-token",
        "role-tags",
        "carries a chat template's instruction markers",
        r"(?i)\[/INST\]\s*\S|<<SYS>>\s*\S|<</SYS>>",
    ),
    (
        "tool-result",
        "role-tags",
        "forges the result of a tool",
        r"(?i)<(?:tool_result|function_results?|tool_response|tool_output|function_call_result)s?>\s*\S"
        r"|</(?:tool_results?|function_results?|tool_response|tool_output|document|documents|search_results|context"
        r"|user_input|untrusted_text)>\s*(?:\W{0,4}(?:system|assistant|developer|human)\b|(?:now|new|please|you)\b)",
    ),
    (
        "turns",
        "role-tags",
        "forges turns of a conversation",
        r"(?i)(?:^|[\n.>]|#{1,4})[ \t]*(?:human|user)[ \t]*:[^\n]{1,160}?[.!?>\s](?:#{1,4} ?)?"
        r"(?:assistant|ai)[ \t]*:[ \t]*\S"
        r"|<assistant>[^<\n]{1,200}</assistant>\s*<(?:user|human)>"
        r"|#{2,4} ?(?:assistant|system)[ \t]*:[^\n]{1,160}#{2,4} ?(?:user|human)[ \t]*:",
    ),
    (
        "system-tag",
        "role-tags",
        "speaks in the system's name",
        r"(?i)</?(?:system|assistant)(?:[-_ ]?(?:prompt|message|instructions?|override))>\s*\S"
        r"|<system>\s*(?:you|ignore|new|the assistant|assistant)\b"
        r"|<system>[^<\n]{0,160}\b(?:grants?|obey|comply|ignore|disregard|full (?:control|access)|trusted)\b"
        r"|\[(?:new |begin |start of )?system (?:message|prompt|override|instructions?)\]\s*\S"
        r"|\"role\"\s*:\s*\"(?:system|developer)\"\s*,\s*\"content\"\s*:\s*\"[^\"\n]{0,200}"
        r"\b(?:you (?:will|must|shall) (?:do|obey|follow|comply)|ignore|disregard|obey)\b",
    ),
    (
        "data-image",
        "exfiltration",
        "puts data into the address of an image or link",
        rf"(?i)!?\[[^\]\n]{{0,80}}\]\(https?://[^)\s]{{1,200}}[?&/=](?:\{{{{?|<|\$\{{?|%7b|\[)[^)\s]{{0,40}}{_LEAK}"
        r"|!\[[^\]\n]{0,80}\]\((?-i:https?://[^)\s]{1,200}=(?:API_?)?(?:KEYS?|SECRETS?|TOKENS?|DATA|HISTORY|PROMPT"
        r"|PASSWORDS?|CONVERSATION|B64|BASE64)[^)\s]{0,40}\))",
    ),
    (
        "pipe-secrets",
        "exfiltration",
        "sends a secret file to a server",
        r"(?i)curl[^\n|;]{0,120}(?:@|<|\$\(cat )\S{0,60}(?:\.env\b|id_rsa|id_ed25519"
        r"|/etc/(?:passwd|shadow)|\.aws/|\.ssh/|\.netrc|\.npmrc|credentials)",
    ),
    (
        "config-allows-all",
        "memory-poisoning",
        "settings that let an agent run everything unasked",
        r"(?i)\"(?:auto_?approve|autoAllow|dangerously\w+|bypassPermissions|skipApproval|yolo)\"\s*:\s*(?:true|\"all\"|\[\s*\"\*)"
        r"|\"permissions\"\s*:\s*\{\s*\"allow\"\s*:\s*\[\s*\"(?:\*|Bash\(\*)",
    ),
)

_COMPILED = tuple(
    (f"{family}/{name}", family, why, linear.compile(pattern.encode()))
    for name, family, why, pattern in _RULES
)

#: Without one of these characters none of the rules can match.
_NEEDED = frozenset('<[:{"@')


def hits(text: str, left: MutableMapping[str, int]) -> Iterator[Hit]:
    """Matches of the markup rules, as many as are ``left``; those between backticks are mentions.

    Linear in ``text``, which is encoded once for all rules.
    """
    if _NEEDED.isdisjoint(text):
        return
    octets = text.encode()
    for name, family, why, pattern in _COMPILED:
        for number, match in enumerate(pattern.finditer(octets) if left[name] else ()):
            first, last = match.start(), match.end()
            # As with the other rules: mentions repeated so often are there to hide something behind them.
            if number < TOLERATED and octets[max(0, first - 1) : first] == b"`":
                continue
            start = len(octets[:first].decode())
            yield Hit(name, family, why, start, start + len(octets[first:last].decode()))
            left[name] -= 1
            if not left[name]:
                break
