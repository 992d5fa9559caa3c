"""The three kubectl tools on real pods in every state."""

import secrets
from collections.abc import Iterator

import pytest
from calls import Reply, ask
from realcluster import RealCluster
from workloads import EVERY_STATE, SLEEP, busybox, pod

from mcp_ops.gate import MAX_REPLY_BYTES
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.tools.kubectl import KUBECTL_DESCRIBE, KUBECTL_GET, KUBECTL_LOGS

STATES = {
    "running": "Running",
    "crashing": "CrashLoopBackOff",
    "hungry": "OOMKilled",
    "homeless": "Pending",
    "imageless": "ErrImageNeverPull",
    "crowded": "Running",
}


@pytest.fixture(scope="module")
def every_state(cluster: RealCluster) -> Iterator[str]:
    """A namespace with a pod in each state, each of them reached."""
    if not cluster.has_node:
        pytest.skip("pods need root; only the API server runs here")
    name = f"states-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    cluster.apply(name, *EVERY_STATE)
    cluster.until(
        "every pod's state",
        lambda: cluster.kubectl("-n", name, "get", "pods") + cluster.kubectl("-n", name, "get", "pods", "-o", "json"),
        lambda shown: "5/5" in shown and all(state in shown for state in STATES.values()),
    )
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


async def get(context: OpsContext, **arguments: object) -> Reply:
    return await ask(KUBECTL_GET, context, arguments)


async def test_get_pods_shows_every_pod_and_its_state(context: OpsContext, every_state: str) -> None:
    shown = (await get(context, resource="pods", namespace=every_state)).text
    lines = {line.split()[0]: line for line in shown.splitlines() if line.strip()}
    assert set(STATES) <= set(lines)
    assert "Running" in lines["running"]
    assert "5/5" in lines["crowded"]
    assert "ErrImageNeverPull" in lines["imageless"]
    assert "Pending" in lines["homeless"]
    # A pod that dies again and again has one of these words at any moment.
    for name, words in (("crashing", ("CrashLoopBackOff", "Error")), ("hungry", ("OOMKilled", "CrashLoopBackOff"))):
        assert any(word in lines[name] for word in (*words, "Running")), lines[name]
        assert int(lines[name].split()[3]) >= 1, "it was never started again"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("running", "Started container"),
        ("crashing", "Back-off restarting failed container"),
        ("hungry", "OOMKilled"),
        ("homeless", "FailedScheduling"),
        ("imageless", "is not present with pull policy of Never"),
        ("crowded", "side-3"),
    ],
)
async def test_describe_says_why(
    context: OpsContext, cluster: RealCluster, every_state: str, name: str, told: str
) -> None:
    cluster.until(
        f"the word {told!r}",
        lambda: cluster.kubectl("-n", every_state, "describe", "pod", name),
        lambda text: told in text,
    )
    reply = await ask(KUBECTL_DESCRIBE, context, {"resource": "pod", "name": name, "namespace": every_state})
    assert reply.verdict == "executed"
    assert told in reply.text


async def test_logs_of_a_crashing_pod_are_those_of_its_last_life(
    context: OpsContext, cluster: RealCluster, every_state: str
) -> None:
    status = ("-n", every_state, "get", "pod", "crashing", "--output=jsonpath={.status.containerStatuses[0].state}")
    cluster.until("the pause after a crash", lambda: cluster.kubectl(*status), lambda text: "CrashLoopBackOff" in text)
    reply = await ask(KUBECTL_LOGS, context, {"pod": "crashing", "namespace": every_state})
    assert (reply.verdict, reply.reading.exit_code) == ("executed", 0)
    assert "FATAL: no route to redis" in reply.text


async def test_logs_of_a_pod_that_never_ran_say_so(context: OpsContext, every_state: str) -> None:
    reply = await ask(KUBECTL_LOGS, context, {"pod": "imageless", "namespace": every_state})
    assert (reply.verdict, reply.reading.exit_code) == ("executed", 1)
    assert "is waiting to start: ErrImageNeverPull" in reply.text


async def test_logs_of_a_pod_without_a_node_are_empty_and_that_is_said(context: OpsContext, every_state: str) -> None:
    reply = await ask(KUBECTL_LOGS, context, {"pod": "homeless", "namespace": every_state})
    assert (reply.verdict, reply.reading.exit_code) == ("executed", 0)
    assert reply.text == "[no output]"


async def test_logs_of_a_pod_that_is_not_there_are_not_found(context: OpsContext, namespace: str) -> None:
    assert (await ask(KUBECTL_LOGS, context, {"pod": "gone", "namespace": namespace})).verdict == "cluster.not_found"


async def test_a_pod_with_several_containers_has_logs_and_says_whose(
    context: OpsContext, cluster: RealCluster, every_state: str
) -> None:
    asked = ("-n", every_state, "logs", "crowded", "--container=app")
    cluster.until("the log", lambda: cluster.attempt(*asked).stdout, lambda text: "from app" in text)
    reply = await ask(KUBECTL_LOGS, context, {"pod": "crowded", "namespace": every_state})
    note, log = reply.text.split("\n", 1)
    assert 'Defaulted container "app" out of: app, side-0, side-1, side-2, side-3' in note
    assert log == "from app"


@pytest.mark.parametrize("output", ["default", "wide", "name", "json", "yaml"])
async def test_a_namespace_that_does_not_exist_is_not_an_empty_one(
    output: str, context: OpsContext, namespace: str
) -> None:
    nowhere = await get(context, resource="pods", namespace="nosuch-namespace", output=output)
    assert nowhere.verdict == "cluster.not_found"
    assert "nosuch-namespace" in nowhere.text
    empty = await get(context, resource="pods", namespace=namespace, output=output)
    assert empty.verdict == "executed"


async def test_describing_all_of_a_kind_in_no_namespace_says_so(context: OpsContext, namespace: str) -> None:
    asked = {"resource": "pods", "namespace": "nosuch-namespace"}
    assert (await ask(KUBECTL_DESCRIBE, context, asked)).verdict == "cluster.not_found"
    assert (await ask(KUBECTL_DESCRIBE, context, asked | {"namespace": namespace})).verdict == "executed"


async def test_an_object_or_a_log_in_no_namespace_is_not_found(context: OpsContext) -> None:
    nowhere = {"namespace": "nosuch-namespace"}
    for tool, asked in (
        (KUBECTL_GET, {"resource": "pods", "name": "web"}),
        (KUBECTL_DESCRIBE, {"resource": "pods", "name": "web"}),
        (KUBECTL_LOGS, {"pod": "web"}),
    ):
        assert (await ask(tool, context, asked | nowhere)).verdict == "cluster.not_found"


async def test_an_oversize_log_keeps_its_end(context: OpsContext, pods: RealCluster, namespace: str) -> None:
    talk = f'for n in $(seq 1 1500); do echo "line $n {"x" * 60}"; done; echo THE-LAST-LINE; {SLEEP}'
    pods.apply(namespace, pod("talkative", busybox(talk)))
    asked = ("-n", namespace, "logs", "talkative", "--tail=1")
    pods.until("the last line", lambda: pods.attempt(*asked).stdout, lambda text: "THE-LAST-LINE" in text)
    reply = await ask(KUBECTL_LOGS, context, {"pod": "talkative", "namespace": namespace, "tail": 1000})
    assert len(reply.text.encode()) <= MAX_REPLY_BYTES
    assert reply.structured["truncated"] is True
    assert "THE-LAST-LINE" in reply.text


async def test_an_oversize_description_keeps_its_events(context: OpsContext, pods: RealCluster, namespace: str) -> None:
    notes = {f"example.com/note-{number}": "x" * 200 for number in range(200)}
    pods.apply(namespace, pod("annotated", busybox(SLEEP), annotations=notes, nodeSelector={"disk": "ssd"}))
    asked = ("-n", namespace, "describe", "pod", "annotated")
    pods.until("the event", lambda: pods.attempt(*asked).stdout, lambda text: "FailedScheduling" in text)
    reply = await ask(KUBECTL_DESCRIBE, context, {"resource": "pod", "name": "annotated", "namespace": namespace})
    assert len(reply.text.encode()) <= MAX_REPLY_BYTES
    assert reply.structured["truncated"] is True
    assert "FailedScheduling" in reply.text
