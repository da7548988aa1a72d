"""Every attack by family, in the order in which the hostile agent's modules have them."""

from tests.attacks.attack import Attack
from tests.attacks.families import answers, evidence, gateway, leaks, repository, resources, results

FAMILIES: dict[str, tuple[Attack, ...]] = {
    "getting the answer": answers.ATTACKS,
    "faking the result": results.ATTACKS,
    "git as a weapon": repository.ATTACKS,
    "attacking collector and grader": evidence.ATTACKS,
    "resources and time": resources.ATTACKS,
    "leaks": leaks.ATTACKS,
    "reaching a model": gateway.ATTACKS,
}
ATTACKS: dict[str, Attack] = {attack.name: attack for family in FAMILIES.values() for attack in family}
