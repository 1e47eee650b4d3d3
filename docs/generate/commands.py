"""Commands of `chromabuild`, from the Typer application."""

import re
from collections.abc import Iterator

import typer

from chromabuild.cli import app
from generate.markdown import cell, code, table


def commands(command: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every command with its words, groups before their members."""
    yield path, command
    for name, member in sorted(getattr(command, "commands", {}).items()):
        if not member.hidden:
            yield from commands(member, (*path, name))


def help_text(text: str) -> str:
    """Help of a command as Markdown: paragraphs that Click keeps as they are (``\\b``) become code."""
    blocks = []
    for paragraph in re.split(r"\n\s*\n", (text or "").strip()):
        if paragraph.lstrip().startswith("\b"):
            title, *lines = paragraph.strip().lstrip("\b\n").splitlines()
            blocks.append(f"{title}\n\n```console\n" + "\n".join(f"$ {line.strip()}" for line in lines) + "\n```"
                          if title.strip().startswith("Example") else
                          "```text\n" + "\n".join([title, *lines]) + "\n```")
        else:
            blocks.append(re.sub(r"\s*\n\s*", " ", paragraph))
    return "\n\n".join(blocks)


def option_rows(command: object) -> Iterator[tuple[str, str, str]]:
    """Name, default and help of every argument and option."""
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        is_option = parameter.param_type_name == "option"
        names = parameter.opts if is_option else [parameter.metavar or parameter.name.upper()]
        shown = getattr(parameter, "show_default", "")
        shown = parameter.default if shown is True else shown
        default = "" if callable(shown) or shown in (None, False, True, "", [], ()) else code(shown)
        yield ", ".join(map(code, names)), default, cell(getattr(parameter, "help", "") or "")


def pages() -> dict[str, str]:
    """File name -> text."""
    text = ("# Commands\n\n`chromabuild COMMAND --help` prints the same on the terminal. Every command takes `--json`\n"
            "for one JSON object on standard output.\n")
    for path, command in commands(typer.main.get_command(app), ("chromabuild",)):
        level = "##" if len(path) <= 2 else "###"
        text += f"\n{level} `{' '.join(path)}`\n\n{help_text(command.help)}\n"
        rows = list(option_rows(command))
        if rows:
            text += "\n" + table(("argument or option", "default", "meaning"), rows)
    return {"commands.md": text}
