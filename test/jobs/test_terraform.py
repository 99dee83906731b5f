"""deploy/terraform: held against the providers' schemas, cloud-init's, and the program's options.

Neither Terraform nor OpenTofu is a Debian package. schemas/*.json is what `terraform providers
schema -json` says of the resources that are used, without deprecated arguments, of the version that
each file names; a resource that is not there has to be recorded first.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from lab.support.pages import blocks

from .hcl import Body, Reader, read

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/terraform"
CLOUDS = {"aws": "aws", "gcp": "google"}
META = {"count", "for_each", "depends_on", "provider"}
META_BLOCKS = {"lifecycle"}
FUNCTIONS = {"list", "templatefile", "merge", "jsonencode", "range", "can", "regex"}
REFERENCE = re.compile(r"(?<![\w.\"/-])((?:data\.)?[a-z]\w*(?:\.\w+|\[[^\]]*\])+)")
SAMPLES = {"public": "203.0.113.10", "network": "default", "uses": "2", "name": "train-0",
           "region": "us-east-1", "parameter": "/train/join-token", "secret": "train-join-token",
           "archive_url": "https://example.org/weft.tar.gz", "archive_sha256": "0" * 64}


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def module(cloud: str) -> Body:
    return read(FOLDER / cloud)


@pytest.fixture
def schema(cloud: str) -> dict:
    return json.loads((Path(__file__).parent / f"schemas/{CLOUDS[cloud]}.json").read_text())


def complaints(body: Body, schema: dict, at: str, meta: set[str]) -> list[str]:
    """What a provider would not take in a block."""
    known, blocks = schema["attributes"], schema.get("blocks", {})
    found = [f"{at}: no argument {name}" for name in body.arguments
             if name not in meta and known.get(name, "computed") == "computed"]
    found += [f"{at}: {name} is missing" for name, kind in known.items()
              if kind == "required" and name not in body.arguments]
    seen = set()
    for kind, labels, inner in body.blocks:
        if kind in META_BLOCKS and meta:
            continue
        if kind == "dynamic":
            [kind], [(_, inner)] = labels, inner.of("content")
        seen.add(kind)
        if kind not in blocks:
            found.append(f"{at}: no block {kind}")
        else:
            found += complaints(inner, blocks[kind], f"{at}.{kind}", set())
    return found + [f"{at}: the block {kind} is missing" for kind, of in blocks.items()
                    if of["required"] and kind not in seen]


def resources(module: Body) -> list[tuple[str, str, str, Body]]:
    return [(kind, *labels, body) for kind in ("resource", "data")
            for labels, body in module.of(kind)]


def all_complaints(module: Body, schema: dict) -> list[str]:
    return [line for kind, type_, name, body in resources(module)
            for line in (complaints(body, schema[kind][type_], f"{type_}.{name}", META)
                         if type_ in schema[kind] else [f"{type_} is not in the schema"])]


def expressions(body: Body) -> list[str]:
    return [*body.arguments.values(), *(text for _, _, inner in body.blocks
                                        for text in expressions(inner))]


def dangling(module: Body, schema: dict) -> list[str]:
    """References to what is not there."""
    variables = {labels[0] for labels, _ in module.of("variable")}
    names = {(kind, type_, name) for kind, type_, name, _ in resources(module)}
    known = {"var": variables,
             "local": {name for _, body in module.of("locals") for name in body.arguments}}
    iterators = {labels[0] for _, _, _, body in resources(module)
                 for labels, _ in body.of("dynamic")} | {"each", "count", "path", "node"}
    found = []
    for text in (text for _, _, inner in module.blocks for text in expressions(inner)):
        # Of a string only what is in ${...} refers to something.
        bare = re.sub(r'"((?:[^"\\$]|\$\{[^}]*\})*)"',
                      lambda m: " ".join(re.findall(r"\$\{([^}]*)\}", m[1])), text)
        for reference in REFERENCE.findall(bare):
            words = re.sub(r"\[[^\]]*\]", "", reference).split(".")
            if words[0] in iterators:
                continue
            if words[0] in known:
                if words[1] not in known[words[0]]:
                    found.append(reference)
                continue
            kind, *words = words if words[0] == "data" else ["resource", *words]
            if (kind, *words[:2]) not in names:
                found.append(reference)
            elif len(words) > 2 and words[2] not in schema[kind][words[0]]["attributes"]:
                found.append(reference)
    return found


def test_what_a_provider_takes(module: Body, schema: dict) -> None:
    assert all_complaints(module, schema) == []
    assert len(resources(module)) > 8


def test_references(module: Body, schema: dict) -> None:
    assert dangling(module, schema) == []
    used = " ".join(text for _, _, inner in module.blocks for text in expressions(inner))
    for labels, body in module.of("variable"):
        assert re.search(rf"\bvar\.{labels[0]}\b", used), f"{labels[0]} is used by nothing"
        assert body.arguments.keys() <= {"description", "type", "default"}
    assert set(re.findall(r"\b([a-z]+)\(", used)) <= FUNCTIONS


def test_what_the_page_sets() -> None:
    given = Reader(blocks("recipes/terraform.md", "conf")["terraform.tfvars"], "tfvars").body("")
    variables = {labels[0]: body for labels, body in read(FOLDER / "aws").of("variable")}
    assert given.arguments.keys() <= variables.keys()
    assert {name for name, body in variables.items()
            if "default" not in body.arguments} <= given.arguments.keys()


@pytest.mark.parametrize(("change", "said"), [
    (("cidr_ipv4 ", "cidr_ipv5 "), "aws_vpc_security_group_ingress_rule.hub_udp: no argument"),
    (('strategy = "cluster"', ""), "aws_placement_group.this: strategy is missing"),
    (("  placement {", "  place {"), "aws_launch_template.node: no block place"),
    (("interface_type ", "interface_kind "), ".network_interfaces: no argument interface_kind"),
    (("aws_eip.hub.public_ip", "aws_eip.hub.ip"), "aws_eip.hub.ip"),
    (("var.node_ami", "var.ami"), "var.ami"),
    (('aws_placement_group" "this', 'aws_placement_group" "that'), "aws_placement_group.this.name"),
])
def test_the_check_finds(change: tuple[str, str], said: str) -> None:
    text = (FOLDER / "aws/main.tf").read_text()
    assert change[0] in text
    schema = json.loads((Path(__file__).parent / "schemas/aws.json").read_text())
    module = Reader(text.replace(*change), "main.tf").body("")
    module.blocks += read(FOLDER / "aws").blocks[-len(read(FOLDER / "aws").of("variable")):]
    found = all_complaints(module, schema) + dangling(module, schema)
    # Required and misnamed at once is told twice.
    assert any(said in line for line in found), found


def templates(module: Body) -> dict[str, set[str]]:
    """The files of user data, and the names that each is given."""
    [install] = [body.arguments["install"] for _, body in module.of("locals")
                 if "install" in body.arguments]
    names = r"^\s*(\w+)\s*="
    found = {}
    for text in (text for _, _, _, body in resources(module) for text in expressions(body)):
        for call in re.findall(r"templatefile\((.*)\)", text, re.S):
            [file] = re.findall(r'\$\{path\.module\}/([\w.]+)"', call)
            assert "merge(local.install," in call
            found[file] = set(re.findall(names, call, re.M)) | set(re.findall(names, install, re.M))
    return found


def render(cloud: str, module: Body) -> dict[str, str]:
    made = {}
    for file, given in templates(module).items():
        text = (FOLDER / cloud / file).read_text()
        wanted = set(re.findall(r"\$\{(.*?)\}", text))
        assert wanted == given and "%{" not in text, f"{file}: {wanted ^ given}"
        made[file] = re.sub(r"\$\{(\w+)\}", lambda m: SAMPLES[m[1]], text)
    assert made.keys() == {"hub.yaml", "node.yaml"}
    return made


def test_user_data_is_cloud_inits(cloud: str, module: Body, tmp_path: Path) -> None:
    if not shutil.which("cloud-init"):
        pytest.skip("cloud-init is not installed")
    for file, text in render(cloud, module).items():
        (tmp_path / file).write_text(text)
        done = subprocess.run(["cloud-init", "schema", "--config-file", tmp_path / file],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "Valid" in done.stdout, done.stdout + done.stderr
    (tmp_path / "bad.yaml").write_text(text.replace("runcmd:", "runcmd: 7\nx:"))
    assert subprocess.run(["cloud-init", "schema", "--config-file", tmp_path / "bad.yaml"],
                          capture_output=True, check=False).returncode != 0


def weft_commands(text: str) -> list[list[str]]:
    """Of scripts and units: the words of each command of weft."""
    joined = text.replace("\\\n", " ")
    return [match[1].split() for match in re.finditer(
        r"(?:^|until |ExecStart=|/)weft ([a-z][^\n|;>]*)", joined, re.M)
        if not match[1].startswith("agent.service")]


def test_user_data_types_what_weft_knows(cloud: str, module: Body, weft: Path) -> None:
    seen = set()
    for text in render(cloud, module).values():
        for file in yaml.safe_load(text)["write_files"]:
            if file["content"].startswith("#!"):
                subprocess.run(["sh", "-n"], input=file["content"], text=True, check=True)
            for words in weft_commands(re.sub(r"^\s+", "", file["content"], flags=re.M)):
                verb = [word for word in words[:2] if re.fullmatch("[a-z]+", word)]
                told = subprocess.run([weft, *verb, "--help"], capture_output=True, text=True,
                                      check=True).stdout
                for word in words:
                    if word.startswith("--"):
                        assert re.search(rf"^\s+{word}\b", told, re.M), (words, word)
                seen.add(" ".join(verb))
    assert seen == {"hub up", "nodes", "token new", "join", "agent"}
