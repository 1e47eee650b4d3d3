"""Write schemas/config.schema.yaml, the JSON schema of locus.yaml, from the model in chromabuild.base.settings.

    python workflows/workflow/scripts/export_schema.py
"""

from pathlib import Path

import yaml

from chromabuild.base.settings import Settings

TARGET = Path(__file__).resolve().parents[1] / "schemas" / "config.schema.yaml"


def schema_text() -> str:
    """The schema as YAML, reproducible."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
    return "# Written by workflows/workflow/scripts/export_schema.py\n" + yaml.safe_dump(schema, sort_keys=True)


if __name__ == "__main__":
    TARGET.write_text(schema_text(), encoding="utf-8")
