"""StoreContract: what every store must do. Subclass it in a test module and give it a `stores` fixture.

class TestMine(StoreContract):
    @pytest.fixture
    def stores(self): yield MyStores(...)
"""

from __future__ import annotations

from fleet.testing.around_contract import AroundContract
from fleet.testing.claim_contract import ClaimContract
from fleet.testing.delivery_contract import DeliveryContract
from fleet.testing.queue_contract import QueueContract
from fleet.testing.reads_contract import ReadsContract
from fleet.testing.session_contract import SessionContract
from fleet.testing.steering_contract import SteeringContract
from fleet.testing.verify_contract import VerifyContract


class StoreContract(
    QueueContract,
    ClaimContract,
    SessionContract,
    VerifyContract,
    AroundContract,
    ReadsContract,
    SteeringContract,
    DeliveryContract,
):
    """All suites over a store."""
