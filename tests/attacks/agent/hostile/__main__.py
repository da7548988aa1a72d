"""``python3 -m hostile hostile:<attack>``: perform one attack; exit as it says, 0 when it returns."""

import sys

from hostile import answers, evidence, gateway, leaks, repository, resources, results

MODULES = (answers, results, repository, evidence, resources, leaks, gateway)


def main(model: str) -> int:
    """Look the attack up by the model's id; anything else than an attack's name is a usage error."""
    provider, _, name = model.partition(":")
    function = name.replace("-", "_")
    for module in MODULES:
        # Not what a module imports: only what it defines is an attack.
        attack = getattr(module, function, None)
        if callable(attack) and provider == "hostile" and attack.__module__ == module.__name__:
            code: int | None = attack()
            return code or 0
    sys.stderr.write(f"hostile: no attack {model!r}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
