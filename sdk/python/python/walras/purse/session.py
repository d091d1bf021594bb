"""A purse in use: its secrets, the lane as a node tells it, and connections to shards."""

from __future__ import annotations

import time
from collections.abc import Callable

from walras.client.sync import Client
from walras.purse import ledger
from walras.purse.errors import LaneError, OtherLaneError, PurseError, UnconfirmedError
from walras.purse.folder import Folder, Held, hexadecimal
from walras.purse.lane import request
from walras.purse.lane.certificate import Certificate
from walras.purse.lane.collect import (
    AGGREGATE,
    SHARES,
    TREES,
    Collection,
    Holding,
    Inquiry,
    SignedPayment,
    build,
    signed_by,
)
from walras.purse.lane.committee import Committee
from walras.purse.lane.layout import Refused
from walras.purse.lane.payment import (
    ACKNOWLEDGEMENT,
    CONFIRMATION,
    INPUTS_MAX,
    Output,
    Payment,
    Summary,
    exit_of,
)
from walras.purse.network import LaneNetwork, LaneNow
from walras.purse.shards import Shards

__all__ = ["Session"]

MARGIN_HEIGHTS, MARGIN_S = 3, 5.0
"""A payment built so few heights before the end of its epoch may come too late: the purse waits, but not for ever."""
PAUSE_S = 0.05


class Session:
    """An open folder, and what it is used with."""

    def __init__(self, folder: Folder, seed: bytes | None, client: Client | None, patience: float) -> None:
        self.folder, self.patience = folder, patience
        self._seed, self._client = seed, client
        self._shards: dict[int, Shards] = {}

    @property
    def network(self) -> LaneNetwork:
        return self.folder.network

    @property
    def seed(self) -> bytes:
        if self._seed is None:
            raise PurseError("the purse was opened without its passphrase: it makes no keys and spends nothing")
        return self._seed

    @property
    def node(self) -> Client:
        if self._client is None:
            raise PurseError("the purse was opened without a client: give it one, such as Client(server)")
        return self._client

    def begin(self) -> LaneNow:
        """The lane at a time when payments may be built, once the purse knows what it has spent."""
        # Without it nothing is asked.
        _ = self.seed
        ledger.resolve(self, 0)
        until = time.monotonic() + MARGIN_S
        now = self.now()
        while now.heights_left <= MARGIN_HEIGHTS and time.monotonic() < until:
            time.sleep(PAUSE_S)
            now = self.now()
        if now.halted:
            raise LaneError("the lane is halted: nothing was sent. Try again later")
        if self.folder.is_copy:
            self.restore(now)
        return now

    def now(self) -> LaneNow:
        """The lane as the node tells it now, and no connection to where its shards listened before."""
        now = self.network.learn(self.node)
        if now.addresses == []:
            raise OtherLaneError(
                f"the node at {self.node.server} does not know where the lane's shards are: give a member's node"
            )
        self.close_shards()
        return now

    def close_shards(self) -> None:
        for shards in self._shards.values():
            shards.close()
        self._shards.clear()

    def shards_of(self, now: LaneNow, home: int) -> Shards:
        if home not in self._shards:
            self._shards[home] = Shards(self.committee(home), now.places(home), now.tls)
        return self._shards[home]

    def committee(self, home: int) -> Committee:
        found = self.network.committee(home)
        if found is None:
            raise LaneError(f"the keys of a quorum of lane epoch {home} are not proved: it is over, or has not begun")
        return found

    def check_scheme(self, home: int, scheme: int) -> None:
        committee = self.committee(home)
        has_bls = bool(committee.bls) and any(committee.bls)
        if (scheme == SHARES and committee.group is None) or (scheme == AGGREGATE and not has_bls):
            raise LaneError(
                f"the members have no keys for this scheme in lane epoch {home}: nothing was sent. Use the scheme "
                '"merkle", which works in every lane epoch'
            )

    def built(self, inputs: list[Holding], into: int, outputs: list[Output]) -> SignedPayment:
        secret = self.folder.keys.secret(self.seed, inputs[0].output.to)
        try:
            return build(self.network.rules(inputs[0].home), secret, inputs, into, outputs)
        except Refused as refused:
            raise PurseError(f"this payment breaks a rule of the lane, so nothing was sent: {refused}") from refused

    def collected(self, now: LaneNow, kind: int, summary: Summary, asked: bytes, scheme: int) -> Certificate:
        shards = self.shards_of(now, summary.home)
        collection = Collection(shards.committee, kind, summary, scheme)
        found: Certificate = shards.ask(collection, request.under(scheme, asked), self.patience)
        return found

    def confirm(self, now: LaneNow, payment: SignedPayment, scheme: int = TREES) -> Certificate:
        """Has a payment in the outbox confirmed, and stores its certificate."""
        try:
            summary = payment.payment.summary()
            certificate = self.collected(now, CONFIRMATION, summary, payment.request, scheme)
        except LaneError as error:
            raise UnconfirmedError(hexadecimal(payment.digest), str(error)) from error
        self.folder.outbox.finish(payment.digest, certificate)
        return certificate

    def acknowledge(self, now: LaneNow, summary: Summary, certificate: Certificate, scheme: int = TREES) -> Certificate:
        return self.collected(now, ACKNOWLEDGEMENT, summary, request.settle(summary, certificate), scheme)

    def settle_all(self, now: LaneNow) -> tuple[int, list[str]]:
        """Settles what is confirmed and not settled: own payments, and what was received."""
        contents, failed, settled = self.folder.contents(), [], 0
        open_ones: list[tuple[Summary, Certificate, str, Callable[[Certificate], None]]] = []
        for sent in contents.sent:
            if not sent.is_settled and sent.certificate is not None:
                keep = self.keeper(sent.payment.digest, None)
                open_ones.append((sent.payment.payment.summary(), sent.certificate, f"payment {sent.id}", keep))
        for held in contents.held.values():
            if held.is_received and not held.is_settled and held.receipt is not None:
                proof = held.receipt.proof
                keep = self.keeper(proof.summary.digest(self.network.id), held)
                open_ones.append((proof.summary, proof.certificate, f"output {hexadecimal(held.id)}", keep))
        for summary, certificate, what, keep in open_ones:
            if now.epoch - summary.home > 2:
                continue
            try:
                keep(self.acknowledge(now, summary, certificate))
                settled += 1
            except LaneError as error:
                failed.append(f"{what}: {error}")
        return settled, failed

    def keeper(self, digest: bytes, held: Held | None) -> Callable[[Certificate], None]:
        if held is None:
            return lambda proof: self.folder.outbox.settle(digest, proof)
        return lambda proof: self.folder.keep_settled(held, digest, proof)

    def renew(self, now: LaneNow) -> int:
        """Moves outputs of the previous epoch into this one, to new keys; none that is worth less than the fee."""
        groups: dict[tuple[bytes, int], list[Holding]] = {}
        for one in self.folder.contents().holdings:
            if one.home + 1 == now.epoch:
                groups.setdefault((one.output.to, one.output.asset), []).append(one)
        renewed = 0
        for (_, asset), group in groups.items():
            least, fee = self.network.rule(asset, group[0].home)
            for at in range(0, len(group), INPUTS_MAX):
                inputs = group[at : at + INPUTS_MAX]
                amount = sum(one.output.amount for one in inputs) - fee
                if amount >= max(least, 1):
                    output = Output(0, self.folder.keys.make(self.seed), asset, amount)
                    self.moved(now, self.built(inputs, now.epoch, [output]))
                    renewed += len(inputs)
        return renewed

    def moved(self, now: LaneNow, payment: SignedPayment) -> None:
        self.folder.outbox.insert(payment)
        certificate = self.confirm(now, payment)
        proof = self.acknowledge(now, payment.payment.summary(), certificate)
        self.folder.outbox.settle(payment.digest, proof)

    def send_home(self, now: LaneNow) -> int:
        """Returns outputs that can only go to the ledger to the accounts of their keys."""
        late = [one for one in self.folder.contents().holdings if one.home + 2 == now.epoch]
        for one in late:
            exits = exit_of(self.network.id, one.home, one.output.to, one.spent)
            payment = self.built([one], one.home, list(exits.outputs))
            self.folder.outbox.insert(payment)
            self.confirm(now, payment)
        return len(late)

    def restore(self, now: LaneNow) -> int:
        """Asks until nothing new is learned; the number of payments that the purse did not know."""
        found = 0
        while True:
            heard = [one for held in self.folder.contents().holdings if (one := self.spender(now, held)) is not None]
            known = {sent.payment.digest for sent in self.folder.outbox.all()}
            new = {payment.digest(): (payment, signature) for payment, signature in heard}
            for digest in known & new.keys():
                del new[digest]
            for payment, signature in new.values():
                keys = {output.to for output in payment.outputs if output.kind == 0}
                self.folder.keys.find_lost(self.seed, keys)
                signed = self.signed(payment, signature)
                self.folder.outbox.insert(signed)
                self.confirm(now, signed)
                found += 1
            if not new:
                self.folder.settle_in()
                return found

    def spender(self, now: LaneNow, held: Holding) -> tuple[Payment, bytes] | None:
        if now.epoch - held.home > 2:
            return None
        shards = self.shards_of(now, held.home)
        inquiry = Inquiry(shards.committee, held, self.folder.keys.secret(self.seed, held.output.to))
        try:
            told = shards.ask(inquiry, inquiry.request, self.patience)
        except LaneError as error:
            raise LaneError(
                f"the purse was copied or restored, and the validators did not answer what it has spent since ({error})"
            ) from error
        return None if told is True else told

    def signed(self, payment: Payment, signature: bytes) -> SignedPayment:
        """The request of a payment that validators know. Those that answer have reserved its inputs, so proofs of
        inputs that the purse has lost do not matter to them."""
        contents = self.folder.contents()
        all_held = contents.held | contents.spent
        proofs = [all_held[one.id].holding.proof if one.id in all_held else None for one in payment.inputs]
        return signed_by(payment, signature, proofs)
