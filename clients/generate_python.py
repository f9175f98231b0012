"""The Python types of the protocol: one `TypedDict` for each object of the schema, and a method for each call."""

import json
import keyword
import re

#: Names of members that would hide a type within the body of a class.
HIDING = {"list", "dict", "str", "int", "bool", "float"}
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
#: The groups of definitions, with the module of each.
MODULES = {"": "base", "v2": "v2", "exec": "exec_events"}
#: Unions over whole messages; the tables and `calls` have their content.
MESSAGES = {"ClientRequest", "ClientNotification", "ServerNotification", "ServerRequest"}


def comment(text, indent="    "):
    """A description as comment lines."""
    return [f"{indent}# {line}".rstrip() for line in (text or "").splitlines()]


def pascal(text):
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text) if part)


def snake(method):
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", method.replace("/", "_"))
    return words.lower()


class Module:
    """Writes the types of one group of definitions."""

    def __init__(self, group, definitions):
        self.group = group
        self.definitions = definitions
        own = definitions if group == "" else definitions.get(group, {})
        self.own = {name: schema for name, schema in own.items() if name not in MODULES and name not in MESSAGES}
        self.names = set(self.own)
        self.lines = []
        self.aliases = {}

    def resolve(self, ref):
        schema = self.definitions
        for part in ref.removeprefix("#/definitions/").split("/"):
            schema = schema[part]
        return schema

    def reference(self, ref):
        *group, name = ref.removeprefix("#/definitions/").split("/")
        target = group[0] if group else ""
        return name if target == self.group else f"{MODULES[target]}.{name}"

    def merged(self, schema):
        """The members and the required ones of an object, with those that it takes over."""
        members, required = {}, []
        for part in schema.get("allOf", []):
            inherited = self.merged(self.resolve(part["$ref"]) if "$ref" in part else part)
            if inherited is None:
                return None
            members.update(inherited[0])
            required += inherited[1]
        if "$ref" in schema:
            return self.merged(self.resolve(schema["$ref"]))
        if "oneOf" in schema or "anyOf" in schema:
            return None
        members.update(schema.get("properties", {}))
        return members, [*required, *schema.get("required", [])]

    def type_of(self, schema, hint):
        """The expression for a schema; objects within it become classes that are named by the hint."""
        if schema is True or not schema:
            return "Any"
        if "$ref" in schema:
            return self.reference(schema["$ref"])
        if "const" in schema:
            return f"Literal[{json.dumps(schema['const'])}]"
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
        if "properties" in schema:
            return self.object_of(schema, hint)
        for union in ("oneOf", "anyOf"):
            if union in schema:
                return self.union_of(schema[union], hint)
        if "allOf" in schema:
            parts = [self.type_of(part, hint) for part in schema["allOf"]]
            return parts[0] if len(parts) == 1 else "dict[str, Any]"
        return self.plain(schema, hint)

    def plain(self, schema, hint):
        kinds = schema.get("type")
        if kinds is None:
            return "Any"
        names = []
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if kind == "array":
                names.append(f"list[{self.type_of(schema.get('items', True), hint + 'Item')}]")
            elif kind == "object":
                names.append(f"dict[str, {self.type_of(schema.get('additionalProperties', True) or True, hint + 'Value')}]")
            else:
                names.append(PLAIN[kind])
        return " | ".join(names)

    def tag(self, part):
        """The name of an object among those of a union: the word that tells it from the others, or its first member."""
        members, _ = self.merged(part) or (part.get("properties", {}), [])
        words = [member["const"] for member in members.values() if isinstance(member, dict) and "const" in member]
        return pascal(next(iter(words or members), "Other"))

    def union_of(self, parts, hint):
        names = [self.type_of(part, hint + self.tag(part) if "properties" in part else hint) for part in parts]
        return " | ".join(dict.fromkeys(names))

    def object_of(self, schema, hint):
        alternatives = schema.get("oneOf")
        if alternatives:
            rest = {key: value for key, value in schema.items() if key != "oneOf"}
            together = [{**rest, "allOf": [*rest.get("allOf", []), part]} for part in alternatives]
            return " | ".join(self.object_of(part, hint + self.tag(part)) for part in together)
        merged = self.merged(schema)
        if merged is None:
            return "dict[str, Any]"
        name = hint
        while name in self.names:
            name += "_"
        self.names.add(name)
        self.write(name, schema.get("description"), *merged)
        return name

    def write(self, name, about, members, required):
        """Writes a class: required members in one, optional ones in another that extends it."""
        fields = {key: (self.type_of(member, name + pascal(key)), member) for key, member in members.items()}
        needed = {key: field for key, field in fields.items() if key in required}
        optional = {key: field for key, field in fields.items() if key not in required}
        if needed and optional:
            self.part(f"_{name}Required", "TypedDict", None, needed)
            self.part(name, f"_{name}Required, total=False", about, optional)
        elif optional:
            self.part(name, "TypedDict, total=False", about, optional)
        else:
            self.part(name, "TypedDict", about, needed)

    def part(self, name, bases, about, fields):
        if any(not key.isidentifier() or keyword.iskeyword(key) or key in HIDING for key in fields):
            return self.functional(name, bases, fields)
        self.lines += ["", "", f"class {name}({bases}):"]
        if about:
            text = about.replace("\\", "\\\\").splitlines()
            self.lines += [f'    """{text[0]}', *[f"    {line}".rstrip() for line in text[1:]]]
            self.lines[-1] += '"""'
            self.lines += [""] if fields else []
        for key, (kind, member) in fields.items():
            if isinstance(member, dict):
                self.lines += comment(member.get("description"))
            self.lines.append(f"    {key}: {kind}")
        if not fields and not about:
            self.lines.append("    pass")
        return None

    def functional(self, name, bases, fields):
        """The form for members whose names Python keeps for itself."""
        parent, _, total = bases.partition(", ")
        own = name if parent == "TypedDict" else f"_{name}Optional"
        rows = "".join(f"    {json.dumps(key)}: {json.dumps(kind)},\n" for key, (kind, _) in fields.items())
        tail = f", {total}" if total else ""
        self.lines += ["", "", f'{own} = TypedDict("{own}", {{\n{rows}}}{tail})']
        if own != name:
            self.lines += ["", "", f"class {name}({parent}, {own}):", "    pass"]

    def definition(self, name, schema):
        if schema.get("type") == "object" and "properties" in schema and "oneOf" not in schema:
            merged = self.merged(schema)
            if merged is not None:
                self.write(name, schema.get("description"), *merged)
                return
        self.aliases[name] = (schema.get("description"), self.type_of(schema, name))

    def write_aliases(self):
        """Writes the other names, each after those that it uses: Python evaluates them at once."""
        waiting = dict(self.aliases)
        while waiting:
            used = {name: set(re.findall(r"(?<![.\w])\w+", kind)) & set(waiting) for name, (_, kind) in waiting.items()}
            ready = [name for name in waiting if not used[name]]
            for name in ready or list(waiting):
                about, kind = waiting.pop(name)
                # One that uses itself is evaluated only by those who ask for it.
                value = kind if ready else json.dumps(kind)
                self.lines += ["", "", *comment(about, ""), f"{name}: TypeAlias = {value}"]

    def text(self, note):
        for name, schema in self.own.items():
            self.definition(name, schema)
        self.write_aliases()
        body = "\n".join(self.lines)
        others = [module for module in MODULES.values() if re.search(rf"\b{module}\.[A-Z]", body)]
        imports = "".join(f"\nfrom . import {other}" for other in others)
        names = [name for name in ("Any", "Literal", "TypeAlias", "TypedDict") if re.search(rf"\b{name}\b", body)]
        head = f"# {note}\nfrom __future__ import annotations\n\nfrom typing import {', '.join(names)}\n{imports}"
        return head.rstrip("\n") + "\n" + body + "\n"


def calls(definitions, note):
    """A class with one coroutine for each method of the table."""
    module = Module("none", definitions)
    rows = definitions["ClientRequest"].get("oneOf") or definitions["ClientRequest"]["anyOf"]
    lines = [
        f"# {note}",
        "from __future__ import annotations",
        "",
        "from collections.abc import Awaitable",
        "from typing import Any, Protocol, cast",
        "",
        "from .protocol import base, v2",
        "",
        "",
        "class _Call(Protocol):",
        "    def __call__(self, method: str, params: Any, /) -> Awaitable[Any]: ...",
        "",
        "",
        "class Calls:",
        '    """Every method of the server, with the types of its parameters and of its result."""',
        "",
        "    def __init__(self, call: _Call) -> None:",
        "        self._call = call",
    ]
    for row in rows:
        params = row["properties"].get("params")
        kind = module.type_of(params, "Params") if params else None
        if params is None:
            takes, gives = "", "{}"
        elif "params" in row.get("required", []):
            takes, gives = f", params: {kind}", "params"
        else:
            takes, gives = f", params: {kind} | None = None", "params"
        answer = module.type_of(row["x-response"], "Response") if "x-response" in row else "Any"
        for method in row["properties"]["method"]["enum"]:
            if method == "initialize":
                continue
            lines += [
                "",
                f"    async def {snake(method)}(self{takes}) -> {answer}:",
                f'        """{row.get("description", method)}"""',
                f'        return cast("{answer}", await self._call("{method}", {gives}))',
            ]
    return "\n".join(lines) + "\n"


#: The tables of both languages: the name of each, and what it has.
TABLES = {
    "methods": ("METHODS", "The methods that a client may call."),
    "notifications": ("NOTIFICATIONS", "The notifications of a server."),
    "serverRequests": ("SERVER_REQUESTS", "The requests of a server."),
    "eventKinds": ("EVENT_KINDS", "The kinds of `codex/event/*`."),
}


def tables(table, note):
    parts = [f"# {note}\n"]
    for name, (constant, about) in TABLES.items():
        rows = "".join(f"        {json.dumps(word)},\n" for word in table[name])
        parts.append(f"#: {about}\n{constant}: frozenset[str] = frozenset(\n    (\n{rows}    )\n)\n")
    return "\n".join(parts)


def outputs(package, definitions, table, note):
    """The files of the package, with their texts."""
    about = '"""The types of all messages: v2 in `v2`, `exec --json` in `exec_events`, everything else in `base`."""'
    yield package / "protocol/__init__.py", f"# {note}\n{about}\n"
    for group, module in MODULES.items():
        yield package / f"protocol/{module}.py", Module(group, definitions).text(note)
    yield package / "calls.py", calls(definitions, note)
    yield package / "tables.py", tables(table, note)
