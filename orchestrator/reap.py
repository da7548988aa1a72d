"""Removing what dead owners left in the engine, and nothing else."""

from __future__ import annotations

from orchestrator.engine import Engine


def reap(engine: Engine) -> list[str]:
    """Remove containers, then volumes, whose owner provably died on this host. Returns what was removed."""
    removed = []
    left = [(kind, name) for kind, name, owner in engine.ours() if owner is not None and owner.dead()]
    for kind, name in sorted(left):
        if kind == "container":
            engine.remove(name)
        else:
            engine.remove_volume(name)
        removed.append(f"{kind} {name[:40]}")
    return removed
