"""What all sections of the settings share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, and so are numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
