"""The one error of this package."""


class Off(Exception):
    """Something in the input is not as agreed: one line that says what and where."""
