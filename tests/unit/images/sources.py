"""Load what runs inside images from its folder, and draw small schematics for it."""

import importlib
import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Any

AGENTS = Path(__file__).resolve().parents[3] / "images/agents"
SCAFFOLD_PARENT = AGENTS / "base"
REFERENCE = AGENTS / "reference"
APPLY = AGENTS / "solution/apply.py"


def scaffold(module: str) -> Any:
    """A module of the scaffolder."""
    if str(SCAFFOLD_PARENT) not in sys.path:
        sys.path.insert(0, str(SCAFFOLD_PARENT))
    return importlib.import_module(f"scaffold.{module}")


IMAGES = AGENTS.parent


def gateway(module: str) -> Any:
    """A module of the gateway."""
    return _inside("gateway", module)


def scripted(module: str) -> Any:
    """A module of the scripted provider."""
    return _inside("scripted", module)


def _inside(package: str, module: str) -> Any:
    if str(IMAGES / package) not in sys.path:
        sys.path.insert(0, str(IMAGES / package))
    return importlib.import_module(f"{package}.{module}")


def reference(module: str) -> Any:
    """A module of the reference agent, which finds the scaffolder beside it."""
    for folder in (SCAFFOLD_PARENT, REFERENCE):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return importlib.import_module(f"reference.{module}")


def program(path: Path, code: str) -> None:
    """A Python program under a name of its own. No shebang names Python: its path may hold a space."""
    script = path.with_name(f"{path.name}.py")
    script.write_text(code)
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {shlex.quote(str(script))} "$@"\n')
    path.chmod(0o755)


def apply_module() -> Any:
    """The solution agent's program as a module."""
    spec = importlib.util.spec_from_file_location("solution_apply", APPLY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LIBRARY = """(lib_symbols
 (symbol "t:R" (symbol "R_1_1"
  (pin passive line (at 0 3.81 270) (length 1.27) (name "~") (number "1"))
  (pin passive line (at 0 -3.81 90) (length 1.27) (name "~") (number "2"))))
 (symbol "t:HDR" (symbol "HDR_1_1"
  (pin passive line (at -5.08 2.54 0) (length 2.54) (name "IN") (number "1"))
  (pin passive line (at -5.08 0 0) (length 2.54) (name "OUT|ALT") (number "2"))
  (pin passive line (at -5.08 -2.54 0) (length 2.54) (name "") (number "3"))))
 (symbol "t:L" (symbol "L_1_1"
  (pin passive line (at 0 0 0) (length 1.27) (name "A") (number "1"))
  (pin passive line (at 5.08 2.54 180) (length 1.27) (name "B") (number "2"))))
 (symbol "t:DUAL"
  (symbol "DUAL_1_1" (pin passive line (at 0 2.54 270) (length 1.27) (name "A") (number "1")))
  (symbol "DUAL_2_1" (pin passive line (at 0 -2.54 90) (length 1.27) (name "B") (number "2"))))
 (symbol "t:GND" (power) (symbol "GND_1_1"
  (pin power_in line (at 0 0 270) (length 0) (name "GND") (number "1")))))"""


def symbol(lib: str, ref: str, at: str, *, value: str = "v", extra: str = "") -> str:
    """A placed symbol; ``at`` is ``x y turn``."""
    return (
        f'(symbol (lib_id "t:{lib}") (at {at}) {extra} (property "Reference" "{ref}") '
        f'(property "Value" "{value}") (property "Footprint" "fp:{lib}"))'
    )


def wire(*points: str) -> str:
    """A wire through points given as ``x y``."""
    return "(wire (pts " + " ".join(f"(xy {point})" for point in points) + "))"


def label(name: str, at: str, kind: str = "label") -> str:
    """A label at ``x y``."""
    return f'({kind} "{name}" (at {at} 0))'


def sheet(file: str, uuid: str) -> str:
    """A sheet symbol."""
    return f'(sheet (uuid "{uuid}") (property "Sheetname" "s") (property "Sheetfile" "{file}"))'


def schematic(*items: str) -> str:
    """A schematic file."""
    return f'(kicad_sch (version 20250114) (uuid "root")\n{LIBRARY}\n' + "\n".join(items) + "\n)\n"


def netlist(nets: dict[str, list[str]], parts: dict[str, str], **mpn: str) -> str:
    """A netlist as kicad-cli writes it; net → ``REF.PIN`` list, reference → value."""
    comps = "".join(
        f'(comp (ref "{ref}") (value "{value}") (footprint "fp:{ref[0]}") (fields '
        + (f'(field (name "MPN") "{mpn[ref]}")' if ref in mpn else '(field (name "Datasheet"))')
        + "))\n"
        for ref, value in parts.items()
    )
    rows = "".join(
        f'(net (code "{code}") (name "{name}") '
        + "".join('(node (ref "{}") (pin "{}"))'.format(*node.split(".")) for node in nodes)
        + ")\n"
        for code, (name, nodes) in enumerate(nets.items(), 1)
    )
    return f'(export (version "E") (components {comps}) (nets {rows}))'
