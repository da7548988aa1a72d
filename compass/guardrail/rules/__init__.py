"""The guardrail's rules: one module a subject, each with a table from command names to functions."""

from compass.guardrail.machine import Handler
from compass.guardrail.rules import (
    access,
    branches,
    disks,
    elsewhere,
    erase,
    interpreters,
    shells,
    text,
    transfer,
    wrappers,
    writes,
)

#: Every command a rule knows, by name.
HANDLERS: dict[str, Handler] = {
    **text.HANDLERS,
    **writes.HANDLERS,
    **erase.HANDLERS,
    **disks.HANDLERS,
    **access.HANDLERS,
    **branches.HANDLERS,
    **transfer.HANDLERS,
    **interpreters.HANDLERS,
    **shells.HANDLERS,
    **wrappers.HANDLERS,
    **elsewhere.HANDLERS,
}
