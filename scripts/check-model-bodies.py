#!/usr/bin/env python3
"""Holds the bodies that the codecs send against the types of the providers' own libraries: every field known, every
value of its type. Sends nothing. Takes directories of files `NAME.FORMAT.json` that have a `body`; without any, those
of crates/models/tests/it/golden. `make tools` installs the libraries."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin
import types as python_types

import typing_extensions
from anthropic.types import message_create_params as anthropic_params
from google.genai import types as gemini
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as responses_params

GOLDEN = Path(__file__).parent.parent / "crates/models/tests/it/golden"

# Fields that the types do not have, on purpose: of servers that imitate OpenAI, and what Anthropic's library dropped
# because its newest models refuse it, while older ones take it.
NOT_THEIRS = {"top_k", "reasoning_content", "extra_content", "temperature"}


def problems(value, hint, place):
    """What does not fit, as lines; none if it fits."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return []
    if hint is None or hint is type(None):
        return [] if value is None else [f"{place}: is not null"]
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.Annotated):
        return problems(value, args[0], place)
    if origin in (Union, python_types.UnionType):
        tried = [problems(value, arg, place) for arg in args]
        return [] if [] in tried else max(tried, key=lambda found: depth(found))
    if origin is Literal:
        return [] if value in args else [f"{place}: {value!r} is none of {args}"]
    if typing_extensions.is_typeddict(hint):
        return of_map(value, hint, place)
    if origin in (dict, Mapping):
        return [] if isinstance(value, dict) else [f"{place}: is no map"]
    if is_list(hint, origin):
        if not isinstance(value, list):
            return [f"{place}: is no list"]
        return [line for at, item in enumerate(value) for line in problems(item, args[0], f"{place}[{at}]")]
    if hint is float:
        return [] if isinstance(value, (int, float)) and not isinstance(value, bool) else [f"{place}: is no number"]
    if hint in (str, bool, int):
        fits = isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
        return [] if fits else [f"{place}: {value!r} is no {hint.__name__}"]
    # Files and the like, which no JSON has.
    if isinstance(hint, type) or isinstance(origin, type):
        return [f"{place}: {value!r} is no {hint}"]
    sys.exit(f"{place}: this check does not understand the type {hint}")


def is_list(hint, origin):
    known = isinstance(origin, type) and issubclass(origin, (Iterable, Sequence))
    return known or getattr(origin, "__name__", "") == "SequenceNotStr"


def depth(found):
    """Of the alternatives of a type, the one that got furthest is the one that was meant."""
    return max((line.count(".") + line.count("[") for line in found), default=0)


def of_map(value, hint, place):
    if not isinstance(value, dict):
        return [f"{place}: is no map"]
    fields = typing_extensions.get_type_hints(hint, include_extras=True)
    # The classes are written with annotations as texts, so what they say of themselves has nothing required.
    required = [key for key, field in fields.items() if get_origin(field) is typing_extensions.Required]
    found = [f"{place}: `{key}` is missing" for key in required if key not in value]
    for key, item in value.items():
        if key in fields:
            found += problems(item, fields[key], f"{place}.{key}")
        elif key not in NOT_THEIRS and not allows_more(hint):
            found.append(f"{place}: `{key}` is not known to {hint.__name__}")
    return found


def allows_more(hint):
    return getattr(hint, "__pydantic_config__", {}).get("extra") == "allow"


def of_gemini(body):
    kinds = {
        "systemInstruction": gemini.Content,
        "toolConfig": gemini.ToolConfig,
        "generationConfig": gemini.GenerationConfig,
    }
    lists = {"contents": gemini.Content, "tools": gemini.Tool}
    found = []
    for key, value in body.items():
        try:
            if key in lists:
                for item in value:
                    lists[key].model_validate(item)
            else:
                kinds[key].model_validate(value)
        except KeyError:
            found.append(f"body: `{key}` is not known")
        except ValueError as error:
            found.append(f"{key}: {error}")
    return found


def check(path):
    body = json.loads(path.read_text())["body"]
    streams = body.get("stream", False)
    kind = path.suffixes[-2].lstrip(".")
    if kind == "gemini":
        return of_gemini(body)
    module, name = {
        "chat": (chat_params, "CompletionCreateParams"),
        "responses": (responses_params, "ResponseCreateParams"),
        "anthropic": (anthropic_params, "MessageCreateParams"),
    }[kind]
    hint = getattr(module, name + ("Streaming" if streams else "NonStreaming"))
    return problems(body, hint, "body")


def main():
    paths = []
    for folder in [Path(argument) for argument in sys.argv[1:]] or [GOLDEN]:
        found = sorted(folder.glob("*.json"))
        if not found:
            sys.exit(f"{folder} has no bodies")
        paths += found
    wrong = 0
    for path in paths:
        found = check(path)
        wrong += bool(found)
        print(f"{'ok  ' if not found else 'DIFF'} {path.name}")
        for line in found:
            print(f"     {line}")
    sys.exit(1 if wrong else 0)


main()
