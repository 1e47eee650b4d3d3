"""Settings of locus.yaml: a table a section and the JSON schema, both from the pydantic model."""

import json
import types
import typing

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from chromabuild.base.phases import Phase, Restraint
from chromabuild.base.settings import Settings, commented_yaml
from generate.markdown import cell, code, table

BOUNDS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def values(annotation: object, bounds: str = "") -> str:
    """The type of a setting in words, with the bounds of a number."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if is_section(annotation):
        return f"`{annotation.__name__}`"
    if origin is typing.Annotated:
        return values(arguments[0], limits(arguments[1:]))
    if origin is typing.Literal:
        return ", ".join(code(word) for word in arguments)
    if origin is typing.Union or origin is types.UnionType:
        return " or ".join("empty" if part is type(None) else values(part, bounds) for part in arguments)
    if origin is tuple:
        each = values(arguments[0])
        return f"list of {each}" if arguments[-1] is Ellipsis else f"{len(arguments)} x {each}"
    return {str: "text", float: "number", int: "integer", bool: "`true`, `false`"}[annotation] + bounds


def limits(metadata: typing.Iterable[object]) -> str:
    """Bounds of a number: `` > 0``, `` >= 20, <= 60``."""
    flat = [part for entry in metadata for part in (entry.metadata if isinstance(entry, FieldInfo) else [entry])]
    found = [f"{sign} {getattr(entry, name):g}"
             for entry in flat for name, sign in BOUNDS.items() if hasattr(entry, name)]
    return " " + ", ".join(found) if found else ""


def default(value: object) -> str:
    """A default as it stands in the file."""
    if value is None or value is PydanticUndefined:
        return ""
    return code(json.dumps(list(value) if isinstance(value, tuple) else value).strip('"'))


def settings_table(fields: dict[str, FieldInfo]) -> str:
    """Key, default, allowed values and meaning of settings."""
    return table(("key", "default", "values", "meaning"), (
        (code(name), default(field.default), values(field.annotation, limits(field.metadata)),
         cell(field.description)) for name, field in fields.items()))


def is_section(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def pages() -> dict[str, str]:
    """File name -> text."""
    sections = {name: field.annotation for name, field in Settings.model_fields.items() if is_section(field.annotation)}
    loose = settings_table({name: field for name, field in Settings.model_fields.items() if name not in sections})
    text = ("# Settings: `locus.yaml`\n\n"
            "One file describes a build; each section belongs to one stage. Units are angstrom, fs, kelvin and mol/L\n"
            "unless a row says otherwise. Paths are relative to the folder of the file. An unknown key is refused.\n\n"
            "`--set section.key=value` on the command line replaces a setting. Editors that know JSON schemas check\n"
            "the file against {download}`locus.schema.json`; the workflow does so too.\n\n" + loose)
    for name, model in sections.items():
        text += f"\n## `{name}`\n\n{cell(model.__doc__ or '')}\n\n" + settings_table(model.model_fields)
        if name == "simulate":
            for entry in (Phase, Restraint):
                text += f"\n### `{entry.__name__}`\n\n{cell(entry.__doc__ or '')}\n\n"
                text += settings_table(entry.model_fields)
    text += f"\n## A file with every default\n\n```yaml\n{commented_yaml(Settings())}```\n"
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
    return {"settings.md": text, "locus.schema.json": json.dumps(schema, indent=1) + "\n"}
