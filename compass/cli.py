"""The ``compass`` command line."""

from typing import Annotated

import typer

from compass import __version__

app = typer.Typer(no_args_is_help=True, add_completion=False)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"compass {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """Offline guardrail, injection detector and model-tier router."""


def main() -> None:
    """Console entry point."""
    app()
