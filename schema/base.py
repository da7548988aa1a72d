"""The base model: frozen, closed, camelCase in JSON, snake_case in Python."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """A value that crosses a boundary. Unknown fields are errors; instances do not change."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        # A NaN in a record would break every reader that is not Python.
        allow_inf_nan=False,
    )

    def to_json(self) -> dict[str, object]:
        """The JSON object of this value, with the names used in files."""
        return self.model_dump(mode="json", by_alias=True)
