"""The manifests in deploy/: they parse, fit together, and name what mara has. No container is started."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from starlette.routing import Route

from graph.environment import NAMES
from tests.docs.pages import ROOT, plain, read, table
from tests.docs.test_commands import problem_of
from workflows.serving.page.app import make_app
from workflows.serving.page.site import Site

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
OF_LIBRARIES = {plain(row["variable"]) for row in table(read(ROOT / "docs/settings.md"), "Variables of the libraries")}
VARIABLES = {*NAMES, *OF_LIBRARIES}
OF_OTHERS = {"PGDATA", "POSTGRES_DB", "POSTGRES_PASSWORD", "POSTGRES_USER"}
PASSWORDS = re.compile(r"(?i)password|key|secret|token")


def objects() -> list[dict[str, Any]]:
    """Return the objects of every manifest but Kustomize's own."""
    paths = [path for path in sorted(KUBERNETES.glob("*.yaml")) if path.name != "kustomization.yaml"]
    return [each for path in paths for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [each for each in objects() if each["kind"] in kinds]


def pods() -> list[dict[str, Any]]:
    """Return the templates of the pods."""
    return [each["spec"]["template"] for each in of_kind("Deployment", "StatefulSet", "Job")]


def containers() -> list[dict[str, Any]]:
    return [container for pod in pods() for container in pod["spec"]["containers"]]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(read(DEPLOY / "docker-compose.yaml"))
    return loaded


def runs_of_mara(compose: dict[str, Any]) -> list[list[str]]:
    """Return the arguments of every command of mara in the manifests."""
    services = [each["command"] for each in compose["services"].values() if each.get("image") == "mara"]
    return [*services, *(container["args"] for container in containers() if "mara" in container["image"])]


def is_left_out(path: str) -> bool:
    """Whether `.dockerignore` keeps a file or one of its folders out of an image, as Docker matches."""
    stars = {r"\*\*/": "(.*/)?", r"\*": "[^/]*"}
    folders = [path, *(str(each) for each in PurePosixPath(path).parents)]
    for line in read(ROOT / ".dockerignore").splitlines():
        if line and not line.startswith("#"):
            pattern = re.sub(r"\\\*\\\*/|\\\*", lambda found: stars[found[0]], re.escape(line))
            if any(re.fullmatch(pattern, each) for each in folders):
                return True
    return False


class TestImage:
    SECRETS = (".env", "keys.toml", "prometheus.key")

    def test_secrets_workspaces_and_documents_do_not_enter_wherever_they_lie(self) -> None:
        for folder in ("", "deploy/", "workflows/serving/"):
            for name in (*self.SECRETS, ".env.local", ".mara/record.sqlite", ".mara-demo/CURRENT"):
                assert is_left_out(folder + name)
        assert is_left_out("deploy/documents/contract.pdf")

    def test_what_git_ignores_does_not_enter(self) -> None:
        ignored = [line.rstrip("/").replace("*", "x") for line in read(ROOT / ".gitignore").splitlines()]
        assert set(self.SECRETS) <= set(ignored)
        assert [name for name in ignored if not is_left_out(name)] == []


class TestEnvironment:
    """Each variable is one that is read, and no secret is written down."""

    def test_of_kubernetes(self) -> None:
        given = {each["name"] for container in containers() for each in container["env"]}
        (configuration,) = of_kind("ConfigMap")
        assert {*given, *configuration["data"]} <= VARIABLES | OF_OTHERS
        assert {"MARA_RECORD_URL", "MARA_OPEN_BYTES", "MARA_AUTH"} <= given

    def test_of_compose(self, compose: dict[str, Any]) -> None:
        given = {name for each in compose["services"].values() for name in each.get("environment", {})}
        assert given <= VARIABLES | OF_OTHERS
        services = compose["services"]
        named = re.compile(r"OPENAI_(BASE_URL|API_KEY)|MARA_(CHAT|CONTEXT|EMBEDDING)_")
        models = {name for name in VARIABLES if named.match(name)}
        for each in ("serve", "index"):
            assert models <= services[each]["environment"].keys()
        assert services["index"]["environment"]["MARA_KEEP_REPLACED"] == "1"
        asked_for = set(re.findall(r"\$\{(\w+)", read(DEPLOY / "docker-compose.yaml")))
        assert set(re.findall(r"^#?([A-Z_]+)=", read(DEPLOY / "example.env"), re.MULTILINE)) == asked_for

    def test_secrets_are_named_and_never_written(self, compose: dict[str, Any]) -> None:
        assert not of_kind("Secret")
        for container in containers():
            for each in container["env"]:
                if PASSWORDS.search(each["name"]) or each["name"] == "MARA_RECORD_URL":
                    assert "secretKeyRef" in each["valueFrom"], each["name"]
        for service in compose["services"].values():
            for name, value in service.get("environment", {}).items():
                if PASSWORDS.search(name):
                    assert value.startswith("${"), name
        assert set(re.findall(r"^\w+=(.*)$", read(DEPLOY / "example.env"), re.MULTILINE)) == {"", "./documents"}

    def test_the_page_tells_how_to_make_every_secret(self) -> None:
        keys = {
            each["valueFrom"]["secretKeyRef"]["key"]
            for container in containers()
            for each in container["env"]
            if "valueFrom" in each and not each["valueFrom"]["secretKeyRef"].get("optional")
        }
        page = read(ROOT / "docs" / "deploy.md")
        assert {key for key in keys if f"--from-literal={key}=" not in page} == set()
        assert "--from-file=keys.toml" in page


class TestCommands:
    def test_are_mara_s_own(self, compose: dict[str, Any]) -> None:
        for run in runs_of_mara(compose):
            assert problem_of(shlex.join(["mara", *run])) == ""
        assert [run[0] for run in runs_of_mara(compose)].count("serve") == 2

    def test_probes_ask_for_addresses_that_there_are(self) -> None:
        (served,) = of_kind("Deployment")
        (container,) = served["spec"]["template"]["spec"]["containers"]
        paths = {container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
        there = {route.path for route in make_app(Site()).routes if isinstance(route, Route)}
        scraped = yaml.safe_load(read(DEPLOY / "prometheus.yaml"))["scrape_configs"][0]["metrics_path"]
        assert paths == {"/ready", "/health"}
        assert {*paths, scraped} <= there


class TestFit:
    """What one manifest names, another one has."""

    def test_the_network_policy_names_components_that_there_are(self) -> None:
        components = {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods()}
        (policy,) = of_kind("NetworkPolicy")
        guarded = policy["spec"]["podSelector"]["matchExpressions"][0]["values"]
        let_in = policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchExpressions"][0]["values"]
        assert {*guarded, *let_in} == components

    def test_servers_read_and_the_job_writes(self) -> None:
        mounts = {
            container["name"]: next(each for each in container["volumeMounts"] if each["name"] == "workspaces")
            for container in containers()
            if container["name"] in ("serve", "index")
        }
        assert mounts["serve"]["readOnly"]
        assert "readOnly" not in mounts["index"]
