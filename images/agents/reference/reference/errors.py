"""What can go wrong: each class is one way on from where it was raised."""


class ToolError(Exception):
    """A tool call that cannot be carried out; the text is the tool's result, which the model reads."""

    def __init__(self, what: str, *, kind: str = "error: ") -> None:
        super().__init__(f"{kind}{what}")


class ProviderError(Exception):
    """No usable reply, and none to be had by asking again."""


class ContextTooLong(Exception):
    """The provider says that the conversation does not fit; a shorter one might."""


class CommitFailed(Exception):
    """git would not commit."""


class Unusable(Exception):
    """The workspace or the command line is not as it has to be: nothing was started."""
