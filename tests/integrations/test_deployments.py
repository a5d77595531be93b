"""Compose and Kubernetes: files that their own schemas take, of settings that there are, as the docs promise."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from support.tools import require_tool

from tilesmith.app.service.configuration import read_settings
from tilesmith.app.service.settings import Settings

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
COMPOSE = ROOT / "deploy" / "compose.yaml"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
KNOWN = {f"TILESMITH_{name.upper()}" for name in Settings.model_fields}
SERVICES = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
FILES = sorted(f for f in KUBERNETES.glob("*.yaml") if f.name != "kustomization.yaml")
OBJECTS = [o for f in FILES for o in yaml.safe_load_all(f.read_text(encoding="utf-8"))]
PODS = {o["metadata"]["name"]: o["spec"]["template"]["spec"] for o in OBJECTS if "template" in o.get("spec", ())}


def containers(name):
    return PODS[name]["containers"][0]


def test_the_compose_file_is_valid():
    program = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", ["1.32", "1.34", "1.36"])
def test_the_manifests_are_valid(version):
    assert len(OBJECTS) > 10
    for found in OBJECTS:
        kubernetes_validate.validate(found, version, strict=True)


def test_kustomize_puts_them_together(tmp_path):
    kubectl = require_tool("kubectl")
    shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    shutil.copy(KUBERNETES / "secrets.env.example", tmp_path / "kubernetes" / "secrets.env")
    done = subprocess.run([kubectl, "kustomize", tmp_path / "kubernetes"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    for found in made:
        kubernetes_validate.validate(found, "1.34", strict=True)
    names = {(o["kind"], o["metadata"]["name"]) for o in made}
    service = next(o for o in made if o["kind"] == "Deployment" and o["metadata"]["name"] == "service")
    reference = service["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"]
    assert ("ConfigMap", reference) in names


def test_they_set_what_there_is_to_set(monkeypatch, tmp_path):
    literals = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["configMapGenerator"][0]["literals"]
    mapped = dict(line.partition("=")[::2] for line in literals)
    compose = [s.get("environment", {}) for n, s in SERVICES.items() if n != "database"]
    for variables in (*compose, mapped, {e["name"]: e.get("value") for e in containers("service")["env"]}):
        assert set(variables) <= KNOWN
    chosen = re.search(r"TILESMITH_ADMIN_TOKEN=(\S+)", COMPOSE.read_text(encoding="utf-8"))[1]
    example = dict(line.split("=", 1) for line in (KUBERNETES / "secrets.env.example").read_text().splitlines())
    assert set(example) - {"POSTGRES_PASSWORD"} <= KNOWN
    for token in (chosen, example["TILESMITH_ADMIN_TOKEN"]):
        assert Settings(admin_token=token, data_dir=tmp_path).admin_token
    for environment in (SERVICES["service"]["environment"], SERVICES["worker"]["environment"], mapped):
        with monkeypatch.context() as patched:
            patched.setenv("TILESMITH_DATA_DIR", str(tmp_path))
            for name, value in environment.items():
                patched.setenv(name, re.sub(r"\$\{.*?\}", chosen, value))
            assert read_settings().pool == "dask://scheduler:8786"


def test_they_wait_for_longer_than_the_service_drains():
    drain = Settings().drain_s
    for name in ("service", "worker"):
        assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > drain + 10
        before = containers(name).get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        assert PODS[name]["terminationGracePeriodSeconds"] > drain + before


def test_pods_have_no_rights_that_they_do_not_need():
    for name, pod in PODS.items():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["resources"]["limits"]["memory"]
        if name != "database":
            assert pod["enableServiceLinks"] is False, "TILESMITH_PORT would be the address of the Service"


def test_only_the_service_is_reached_from_outside():
    assert [name for name, s in SERVICES.items() if "ports" in s] == ["service"]
    assert all(p.startswith("127.0.0.1:") for p in SERVICES["service"]["ports"])
    assert {name for name, s in SERVICES.items() if "outside" in s["networks"]} == {"service"}
    policies = {o["metadata"]["name"]: o["spec"] for o in OBJECTS if o["kind"] == "NetworkPolicy"}
    assert policies["none"]["podSelector"] == {}
    assert set(policies) == {"none", *PODS}
    assert [n for n, p in policies.items() if any("from" not in rule for rule in p.get("ingress", ()))] == ["service"]


def test_the_image_has_their_commands_and_folders():
    owned = re.search(r"install -d -o tilesmith -g tilesmith (.+)", DOCKERFILE)[1].split()
    ours = [s for n, s in SERVICES.items() if n != "database"]
    mounted = {v.partition(":")[2] for s in ours for v in s.get("volumes", ())}
    mounted |= {m["mountPath"] for n in ("service", "worker") for m in containers(n)["volumeMounts"]} - {"/tmp"}
    assert mounted <= set(owned)
    assert "[dask,otel,postgres]" in DOCKERFILE
    programs = {s["command"][0] for s in ours if "command" in s}
    programs |= {c["args"][0] for c in map(containers, PODS) if "args" in c}
    assert programs == {"dask", "tilesmith"}
