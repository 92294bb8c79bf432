"""The broker knows a gateway apart from each device: it ends the older of two of one client id."""

from types import SimpleNamespace

from device_agent.gateway import process as process_module
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.process import GatewayProcess
from device_agent.gateway.run import GatewaySettings
from lasp_edge.link import BrokerUrl, Will
from lasp_edge.protocol.topics import Topics, readable
from tests.cloud_tier.support_devices import rooms


def test_no_device_has_the_client_id_of_a_gateway(tmp_path, monkeypatch):
    asked = {}
    monkeypatch.setattr(process_module, "Link", lambda *_, **more: asked.update(more))
    settings = GatewaySettings("pi", "", WaitingTerms(), 0, 0)
    process = GatewayProcess(rooms(), BrokerUrl.parse("mqtt://127.0.0.1:1"), tmp_path, settings)
    process._link_of(SimpleNamespace(will=Will("a", b""), subscriptions=[]), 1)
    root, names = Topics(rooms().name).root, ("gateway-pi", "gateway/pi", "gateway", "pi")
    assert asked["client_id"] not in {f"{root}/{readable(name)}" for name in names}
