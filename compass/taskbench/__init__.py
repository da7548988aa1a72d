"""The task-success benchmark: five small repositories with a seeded bug each, and for each an oracle that
says whether an agent mended it.

``tasks/NN-name`` holds ``setup.sh`` (makes the repository), ``task.md`` (the prompt) and ``check.sh`` (the
oracle); ``fixes/NN-name`` the reference fix and wrong fixes, which only ``validate`` reads. ``validate``
proves the tasks without spending a token; ``run`` starts an agent and spends some.
"""
