"""docs/lane-specification.md, followed word by word by `walras.purse.lane` and `lane_reference`, without code of the node.

They make and verify every vector, and refuse every mutation with its reason.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from lane_reference import bridge, shard

from walras.purse.lane import bls, certificate, collect, committee, ed25519, payment, receipt, request, trees, wire
from walras.purse.lane.layout import Reader, Refused, parsed

ALL = json.loads((Path(__file__).resolve().parents[3] / "docs" / "lane-vectors.json").read_text())
WORLD, MADE = ALL["world"], ALL["made"]


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


NETWORK = raw(WORLD["network"])
REGISTRARS = [raw(key) for key in WORLD["registrars"]]
RULES = payment.Rules(
    NETWORK, {one["asset"]: (int(one["least_units"]), int(one["fee"])) for one in WORLD["assets"]}
)


@cache
def plain(epoch: int) -> committee.Committee | None:
    found = [parsed(committee.read_registration, raw(one)) for one in WORLD["registrations"]]
    if not any(one.epoch == epoch for one in found):
        return None
    return committee.seated(NETWORK, epoch, REGISTRARS, found)


@cache
def of_epoch(epoch: int) -> committee.Committee | None:
    found, board = plain(epoch), WORLD["boards"].get(str(epoch))
    return committee.with_board(found, raw(board)) if found and board else found


def known(epoch: int) -> committee.Committee:
    return receipt.known(of_epoch, epoch)


def judged_request(vector: dict) -> None:
    backed = {
        raw(one["id"]): payment.Output(0, raw(one["owner"]), one["asset"], int(one["amount"]))
        for one in vector["backed"]
    }
    here = known(vector["epoch"])
    judge = shard.Shard(RULES, here, of_epoch, vector["member"], vector["shard"], vector["now"], backed)
    for before in vector["before"]:
        judge.judge(raw(before))
    judge.judge(raw(vector["bytes"]))


def judged(vector: dict) -> bytes | None:
    """Verifies a vector; returns what it encodes to, for forms that are encoded again."""
    data = raw(vector["bytes"]) if vector["form"] != "slip" else b""
    match vector["form"]:
        case "payment":
            paid = payment.parse_payment(data)
            paid.check(RULES)
            return paid.encode()
        case "certificate":
            found = certificate.parse_certificate(data)
            claim = certificate.Claim(vector["kind"], raw(vector["owner"]), raw(vector["digest"]))
            found.verify(known(vector["epoch"]), claim)
            return found.encode()
        case "receipt":
            proved = receipt.parse_receipt(data)
            proved.verify(NETWORK, of_epoch)
            return proved.encode()
        case "request":
            judged_request(vector)
        case "registration":
            registered = parsed(committee.read_registration, data)
            registered.verify(NETWORK, REGISTRARS)
            return registered.encode()
        case "post":
            post = bridge.parse_post(data)
            post.verify(bridge.Ledger(NETWORK, REGISTRARS, of_epoch))
            return bytes([data[0]]) + post.encode()[1:]
        case "board":
            here = plain(vector["epoch"])
            assert here is not None
            committee.with_board(here, data)
        case "slip":
            slip = receipt.parse_slip(vector["bytes"], NETWORK)
            assert receipt.slip_text(slip, NETWORK) == vector["bytes"]
        case "reply":
            return wire.parse_reply(data).encode()
        case "frame":
            frames, rest = wire.split(data, wire.REPLY_BYTES_MAX)
            return b"".join(wire.frame(*one) for one in frames) + rest
        case other:
            raise AssertionError(other)
    return None


def name(vector: dict) -> str:
    return f"{vector['form']}: {vector['name']}"


@pytest.mark.parametrize("vector", ALL["verified"], ids=name)
def test_each_form_of_the_lane_verifies_and_has_one_encoding(vector: dict) -> None:
    again = judged(vector)
    assert again is None or again == raw(vector["bytes"])


@pytest.mark.parametrize("vector", ALL["refused"], ids=name)
def test_each_mutation_is_refused_with_its_reason(vector: dict) -> None:
    with pytest.raises(Refused) as refused:
        judged(vector)
    assert refused.value.reason == vector["reason"], refused.value


def test_at_least_thirty_mutations_of_every_form_are_refused() -> None:
    assert len(ALL["refused"]) >= 30
    assert {one["form"] for one in ALL["refused"]} == {one["form"] for one in ALL["verified"]}


def test_quorums_shards_and_accounts_follow_from_their_numbers() -> None:
    for members, *expected in MADE["quorums"]:
        of = committee.Quorums(members)
        assert [of.faulty, of.certificate, of.binding, of.witness] == expected
    for owner, shards, place in MADE["shards"]:
        assert committee.shard_of(raw(owner), shards) == place
    for key, account in MADE["accounts"]:
        assert ed25519.account(raw(key)) == raw(account)


def test_ids_are_hashes_of_what_created_the_output() -> None:
    ids = MADE["ids"]
    assert payment.deposit_id(NETWORK, 3, bytes([4] * 20), 12) == raw(ids["deposit"])
    assert payment.genesis_id(NETWORK, 2) == raw(ids["genesis"])
    assert payment.carried_id(NETWORK, bytes([6] * 32)) == raw(ids["carried"])


@pytest.mark.parametrize("tree", MADE["trees"], ids=lambda tree: tree["size"])
def test_a_tree_has_this_root_and_these_paths(tree: dict) -> None:
    size = tree["size"]
    leaves = [trees.leaf(trees.SIGNED, bytes([leaf] * 32)) for leaf in range(size)]
    assert trees.root(trees.SIGNED, leaves) == raw(tree["root"])
    for index, expected in enumerate(tree["paths"]):
        path = trees.path(trees.SIGNED, leaves, index)
        assert path == [raw(digest) for digest in expected]
        assert trees.root_of(trees.SIGNED, leaves[index], size, index, path) == raw(tree["root"])


@pytest.mark.parametrize("vector", MADE["signatures"], ids=lambda vector: vector["name"])
def test_a_signature_holds_by_zip_215(vector: dict) -> None:
    parts = [raw(vector[field]) for field in ("key", "message", "signature")]
    assert ed25519.holds(*parts) == ed25519.holds_by_zip215(*parts) == vector["valid"]


def of_fields(vector: dict) -> payment.Payment:
    inputs = [payment.Spent(raw(one["id"]), one["asset"], int(one["amount"])) for one in vector["inputs"]]
    outputs = [
        payment.Output("account" in one, raw(one.get("account") or one["key"]), one["asset"], int(one["amount"]))
        for one in vector["outputs"]
    ]
    owner = ed25519.public(raw(vector["seed"]))
    return payment.Payment(NETWORK, vector["home"], vector["into"], owner, tuple(inputs), tuple(outputs))


@pytest.mark.parametrize("vector", MADE["payments"], ids=lambda vector: vector["digest"][:10])
def test_a_payment_is_made_of_its_fields(vector: dict) -> None:
    made = of_fields(vector)
    assert made.encode() == raw(vector["bytes"])
    assert made.summary().encode() == raw(vector["summary"])
    assert made.digest() == raw(vector["digest"])
    assert [made.id(index) for index in range(len(made.outputs))] == [raw(one) for one in vector["ids"]]
    assert made.is_exit() == vector["is_exit"]
    assert made.signing_bytes() == raw(vector["signing_bytes"])
    assert ed25519.sign(raw(vector["seed"]), made.signing_bytes()) == raw(vector["signature"])


def test_requests_are_made_of_payments_proofs_and_certificates() -> None:
    parent, child = MADE["payments"][1:3]
    spends = of_fields(child)
    data = raw(MADE["child"]["request"])
    asked = shard.parse_request(data)
    assert isinstance(asked, shard.Spend) and asked.payment == spends
    proofs = parsed(lambda reader: reader.times(2, receipt.read_proof), asked.proofs)
    assert [proof.summary for proof in proofs] == [of_fields(parent).summary()] * 2
    by_id = {of_fields(parent).id(index): index for index in range(2)}
    made = [receipt.receipt_of(of_fields(parent), by_id[one.id], proofs[0].certificate).proof for one in spends.inputs]
    assert request.spend(spends, raw(child["signature"]), made) == data
    settles = shard.parse_request(raw(MADE["child"]["settle"]))
    assert isinstance(settles, shard.Settle)
    assert request.settle(settles.summary, settles.certificate) == raw(MADE["child"]["settle"])
    seed = raw(parent["seed"])
    assert request.question(NETWORK, 5, seed, bytes([6] * 32)) == raw(MADE["question"])


def test_the_group_key_follows_from_the_board() -> None:
    group = known(5).group
    assert group is not None and bls.library().key_bytes(group.key) == raw(MADE["group_key"])


def test_a_complaint_proves_that_a_share_is_wrong_and_nothing_else() -> None:
    here = plain(5)
    assert here is not None
    post = bridge.parse_post(raw(next(one["bytes"] for one in ALL["verified"] if one["name"] == "complain")))
    assert isinstance(post, bridge.Complain)
    board = Reader(raw(WORLD["boards"]["5"]))
    read = committee.read_dealing(here.quorums)
    dealings = board.times(board.u8(), lambda of: (read(of), of.signature()))
    wrong, right = (dealings[dealer][0] for dealer in (post.complaint.dealer, 0))
    post.complaint.verify(here, wrong)
    assert post.complaint.is_justified(here, wrong)
    for other in [replace(post.complaint, member=1), replace(post.complaint, challenge=post.complaint.response)]:
        with pytest.raises(Refused, match="WrongComplaint"):
            other.verify(here, wrong)
    with pytest.raises(Refused, match="WrongComplaint"):
        post.complaint.verify(here, right)


def answered(epoch: int) -> tuple[payment.Summary, list[wire.Answered]]:
    """A payment of an epoch, and the answers of the vector with its certificate."""
    settles = shard.parse_request(raw(MADE["child"]["settle"]))
    assert isinstance(settles, shard.Settle) and settles.summary.home == epoch
    assert isinstance(settles.certificate, certificate.Answers)
    digest = settles.summary.digest(NETWORK)
    return settles.summary, [wire.Answered(2, digest, answer) for answer in settles.certificate.answers]


def test_a_payment_is_fast_with_a_quorum_of_answers_that_verify_and_not_before() -> None:
    summary, replies = answered(5)
    collection = collect.Collection(known(5), payment.CONFIRMATION, summary)
    assert [member for member, _ in collection.to_ask()] == [0, 1, 2, 3]
    first = replies[0].answer
    lies = [
        wire.Answered(3, replies[0].digest, first),
        wire.Answered(2, bytes(32), first),
        wire.Answered(2, replies[0].digest, replace(first, validator=1)),
        wire.Answered(2, replies[0].digest, replace(first, position=first.position + 1)),
        wire.BlsAnswered(2, replies[0].digest, 0, bytes(48)),
    ]
    for lie in lies:
        assert collection.add(0, lie) is None and not collection.answers
    for reply in [replies[0], replies[0], replies[1]]:
        assert collection.add(0, reply) is None, "a copy is no second signer"
    assert [member for member, _ in collection.to_ask()] == [2, 3]
    found = collection.add(2, replies[2])
    assert found is not None and found.encode() == certificate.Answers(tuple(one.answer for one in replies)).encode()


def test_refusals_are_final_only_if_they_say_so_and_only_from_whom_was_asked() -> None:
    summary, replies = answered(5)
    collection = collect.Collection(known(5), payment.CONFIRMATION, summary)
    collection.add(3, wire.Refusal(True, "busy"))
    assert not collection.refused
    collection.add(3, wire.Refusal(False, "no"))
    assert not collection.is_hopeless() and [member for member, _ in collection.to_ask()] == [0, 1, 2]
    collection.add(0, replies[0])
    collection.add(0, wire.Refusal(False, "an answer is not taken back"))
    assert not collection.is_hopeless()
    collection.add(1, wire.Refusal(False, "no"))
    assert collection.is_hopeless(), "two of four are left, and three are needed"


def test_what_a_purse_stores_is_what_it_sends() -> None:
    seed = raw(MADE["payments"][2]["seed"])
    key = ed25519.public(seed)
    held = [collect.Holding(bytes([number] * 32), payment.Output(0, key, 0, 10 * number), 5) for number in (1, 2)]
    made = collect.build(RULES, seed, held, 5, [payment.Output(0, key, 0, 30)])
    assert collect.restored(made.stored()) == made
    with pytest.raises(Refused, match="Malformed"):
        collect.restored(made.stored().replace(made.digest, bytes(32)))
    with pytest.raises(Refused, match="WrongSum"):
        collect.build(RULES, seed, held, 5, [payment.Output(0, key, 0, 31)])


@pytest.mark.parametrize("library", bls.installed())
def test_each_library_agrees_about_bls(library: str) -> None:
    """What is slow in Python alone is checked once; all libraries refuse the same points."""
    bls.use(library)
    of_epoch.cache_clear()
    plain.cache_clear()
    try:
        good = next(one for one in ALL["verified"] if one["name"] == "an aggregate of a quorum")
        bad = [one for one in ALL["refused"] if one["name"].startswith("an aggregate that is")]
        data, here = raw(good["bytes"]), raw(WORLD["registrations"][-1])
        registered = parsed(committee.read_registration, here)
        assert all(bls.library().key(key) is not None for key, _ in registered.bls)
        assert bls.library().key(bytes([0xC0]) + bytes(95)) is None
        signature = certificate.parse_certificate(data).signature
        assert bls.library().signature_bytes(bls.library().signature(signature)) == signature
        bad += [one for one in ALL["refused"] if one["name"] == "an aggregate outside the subgroup"]
        assert len(bad) == 3
        for one in bad:
            assert bls.library().signature(certificate.parse_certificate(raw(one["bytes"])).signature) is None
        keys = [bls.key(key) for key, _ in registered.bls]
        twice = bls.total([keys[0], keys[0]])
        assert bls.library().key_bytes(twice) == bls.library().key_bytes(bls.library().multiply(keys[0], 2))
        account = ed25519.account(REGISTRARS[registered.member])
        key, proof = registered.bls[0]
        message = payment.PREFIX + NETWORK + account + b"\2" + key
        assert bls.holds(keys[0], message, proof, bls.POSSESSIONS)
        assert not bls.holds(keys[0], message, proof, bls.SIGNATURES)
    finally:
        bls.use(bls.installed()[0])
        of_epoch.cache_clear()
        plain.cache_clear()
