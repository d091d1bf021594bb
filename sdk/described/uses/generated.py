"""The client of openapi-python-client, against the node at WALRAS_HTTP."""

import os

from openapi_client import Client
from openapi_client.api.default import prepare, status
from openapi_client.models import NodeStatus, PayOperation, PayOperationType, PreparedBody, PrepareRequest

client = Client(base_url=os.environ["WALRAS_HTTP"], raise_on_unexpected_status=True)
now = status.sync(client=client)
assert isinstance(now, NodeStatus) and now.height >= 0, now

operation = PayOperation(type_=PayOperationType.PAY, to=f"0x{'22' * 20}", asset="USD", amount="5")
asked = PrepareRequest(account=f"0x{'11' * 20}", sequence="1", until="100", operation=operation)
prepared = prepare.sync(client=client, body=asked)
assert isinstance(prepared, PreparedBody) and "USD" in prepared.says, prepared
