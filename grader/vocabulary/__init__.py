"""The assertion vocabulary: one plain function a type, ``(args, context) -> Outcome`` (Standard §4).

Modules are grouped by the evidence they read: ``end_state`` and ``rules`` the final files, ``changes`` the
final files against the baseline, ``events`` the transcript. ``registry`` maps every type to its function.
"""
