"""docs/specification.md, followed word by word: nothing here comes from the package, and no code is shared with it.

Each vector names its fields; from them alone the bytes, the id and the signature are made again.
"""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PUBLISHED = json.loads((Path(__file__).resolve().parents[3] / "docs" / "vectors.json").read_text())
VECTORS = PUBLISHED["vectors"]


PARAMETERS = (
    "fee least_base_fee resting_offers open_pairs validators until_max minimum_stake reward assets_max listing_fees"
    " listing_policy"
).split()


def u8(value: int) -> bytes:
    return value.to_bytes(1, "little")


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int | str) -> bytes:
    return int(value).to_bytes(8, "little")


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def string(text: str) -> bytes:
    return u32(len(text.encode())) + text.encode()


def option(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def price(text: str) -> bytes:
    sign, digits, exponent = Decimal(text).as_tuple()
    assert sign == 0 and isinstance(exponent, int)
    significant = "".join(map(str, digits)).lstrip("0")
    decade = len(significant) - 1 + exponent
    mantissa = int(significant.rstrip("0").ljust(17, "0"))
    assert 10**16 <= mantissa < 10**17
    return ((decade + 18) << 57 | mantissa).to_bytes(8, "big")


def derived(context: str, message: bytes) -> bytes:
    return blake3(message, derive_key_context=context).digest()


CONTROLS = ["open", "freezable", "admitted", "recoverable", "admitted_recoverable"]


def reference_of(asked: dict) -> bytes:
    reference = raw(asked["reference"])
    kind = u8(["text", "uuid", "message", "number"].index(asked["referenceKind"]))
    return kind + u32(len(reference)) + reference


def operation(asked: dict) -> bytes:
    match asked["type"]:
        case "create_account":
            return u8(0) + raw(asked["account"]) + raw(asked["key"])
        case "create_offer":
            pair = u32(asked["sell"]) + u32(asked["buy"])
            kind, _, height = asked["life"].partition(" ")
            life = u8(["rests", "until", "one"].index(kind)) + (u64(height) if kind == "until" else b"")
            return u8(1) + pair + u64(asked["amount"]) + price(asked["limit"]) + life + raw(asked["client"])
        case "cancel":
            offers = [
                u32(one["sell"]) + u32(one["buy"]) + price(one["limit"]) + u64(one["offer"]) for one in asked["offers"]
            ]
            return u8(2) + u32(len(offers)) + b"".join(offers)
        case "replace":
            kind, _, height = asked["life"].partition(" ")
            life = u8(["rests", "until", "one"].index(kind)) + (u64(height) if kind == "until" else b"")
            old = u32(asked["sell"]) + u32(asked["buy"]) + price(asked["oldLimit"]) + u64(asked["offer"])
            terms = u64(asked["remains"]) + u64(asked["amount"]) + price(asked["limit"])
            return u8(12) + old + terms + life + raw(asked["client"])
        case "exact":
            terms = u8(["buy", "sell"].index(asked["side"])) + u64(asked["units"]) + u64(asked["bound"])
            return u8(14) + u32(asked["sell"]) + u32(asked["buy"]) + terms + raw(asked["client"])
        case "authorize_session":
            caps = b"".join(u32(one["asset"]) + u64(one["units"]) for one in asked["caps"])
            scope = u8(["cancel", "trade", "duty", "control"].index(asked["scope"]))
            terms = u32(asked["slot"]) + raw(asked["key"]) + scope + u64(asked["ends"]) + u64(asked["alive"])
            return u8(15) + u8(0) + terms + u32(len(asked["caps"])) + caps + raw(asked["possession"])
        case "revoke_session":
            return u8(15) + u8(1) + u32(asked["slot"])
        case "session_alive":
            return u8(15) + u8(2) + u32(asked["slot"]) + u64(asked["through"])
        case "pay":
            return u8(3) + raw(asked["to"]) + u32(asked["asset"]) + u64(asked["amount"])
        case "issue":
            return u8(4) + raw(asked["to"]) + u32(asked["asset"]) + u64(asked["amount"])
        case "burn":
            return u8(5) + u32(asked["asset"]) + u64(asked["amount"])
        case "stake":
            validator = raw(asked["key"]) + string(asked["address"]) + raw(asked["possession"])
            return u8(6) + u64(asked["units"]) + validator
        case "unstake":
            return u8(7) + u64(asked["units"])
        case "accuse":
            about = u64(asked["epoch"]) + u8(asked["member"]) + u64(asked["height"])
            return u8(8) + about + contradiction(asked["contradiction"])
        case "present":
            return u8(16) + u64(asked["epoch"])
        case "approve":
            terms = u32(asked["rules"]) + raw(asked["manifest"]) + u64(asked["notice"])
            return u8(17) + terms + u64(asked["at"])
        case "unapprove":
            return u8(18) + u32(asked["rules"]) + u64(asked["at"])
        case "pay_referenced" | "issue_referenced" as named:
            paid = raw(asked["to"]) + u32(asked["asset"]) + u64(asked["amount"])
            code = {"pay_referenced": 19, "issue_referenced": 20}[named]
            return u8(code) + paid + reference_of(asked)
        case "set_keys" | "recover_keys" as kind:
            first = raw(asked["first"]) if kind == "set_keys" else b""
            return u8(21 + (kind == "recover_keys")) + key_change(asked) + first + key_signatures(asked)
        case "complete_keys":
            return u8(23) + raw(asked["changed"])
        case "set_receiving":
            return u8(24) + u8(["optional", "required"].index(asked["references"]))
        case "list_asset":
            head = string(asked["symbol"]) + u8(asked["decimals"]) + u8(CONTROLS.index(asked["control"]))
            sizes = u64(asked["leastUnits"]) + u64(asked["supplyMax"])
            return u8(25) + head + sizes + raw(asked["document"]) + u64(asked["fees"])
        case "close_asset":
            return u8(26) + u32(asked["asset"]) + u8(["announce", "revoke"].index(asked["closing"]))
        case "propose_parameter":
            place = PARAMETERS.index(asked["parameter"])
            return u8(27) + u8(0) + u8(place) + u64(asked["value"])
        case "propose_listing":
            head = raw(asked["issuer"]) + string(asked["symbol"]) + u8(asked["decimals"])
            sizes = u64(asked["leastUnits"]) + u64(asked["supplyMax"])
            control = u8(["open"].index(asked["control"]))
            return u8(27) + u8(1) + head + control + sizes + raw(asked["document"])
        case "propose_closing":
            return u8(27) + u8(2) + u32(asked["asset"])
        case "propose_lane_terms":
            sizes = u64(asked["leastUnits"]) + u64(asked["fee"])
            limit = u64(asked["outflowMost"]) + u64(asked["outflowPerHeight"])
            deposits = u8(["refused", "taken"].index(asked["deposits"]))
            return u8(27) + u8(3) + u32(asked["asset"]) + sizes + deposits + limit
        case "vote":
            return u8(28) + raw(asked["proposal"]) + u8(["no", "yes"].index(asked["word"]))
        case "set_holder":
            said = u32(asked["asset"]) + raw(asked["holder"]) + u8(["frozen", "open"].index(asked["state"]))
            return u8(29) + said + reference_of(asked)
        case "recover":
            moved = u32(asked["asset"]) + raw(asked["from"]) + raw(asked["to"]) + u64(asked["amount"])
            return u8(30) + moved + reference_of(asked)
        case "withdraw":
            return u8(9) + raw(asked["to"]) + u32(asked["asset"]) + u64(asked["amount"])
        case "open_pool" | "provide" | "leave" as kind:
            names = {
                "open_pool": ("x", "y"),
                "provide": ("shares", "mostA", "mostB"),
                "leave": ("shares", "leastA", "leastB"),
            }
            pool = u32(asked["a"]) + u32(asked["b"]) + u8(asked["class"])
            return u8(13) + u8(list(names).index(kind)) + pool + b"".join(u64(asked[name]) for name in names[kind])
        case "lane":
            post = raw(asked["post"])
            return u8(10) + u32(len(post)) + post
        case "seal_duty":
            post = raw(asked["post"])
            return u8(31) + u64(asked["key"]) + u32(len(post)) + post
        case "sealed":
            boxed = [raw(asked[name]) for name in ("point", "sealed")]
            return u8(32) + u64(asked["key"]) + u8(asked["size"]) + b"".join(u32(len(one)) + one for one in boxed)
        case other:
            raise AssertionError(other)


def listed(entries: list[dict], *names: str) -> bytes:
    """A count, and so many entries of these fields."""
    one = [b"".join(u8(entry[n]) if n == "weight" else raw(entry[n]) for n in names) for entry in entries]
    return u32(len(one)) + b"".join(one)


def key_change(asked: dict) -> bytes:
    signers = listed(asked["keys"], "key", "weight") + listed(asked["wallets"], "wallet", "weight")
    weights = u16(int(asked["move"])) + u16(int(asked["govern"]))
    guardians = listed(asked["guardianKeys"], "key") + listed(asked["guardianWallets"], "wallet")
    waits = u8(int(asked["guardians"])) + u32(int(asked["delay"]))
    fate = u8(["close", "keep"].index(asked["sessions"]))
    return raw(asked["changed"]) + raw(asked["last"]) + signers + weights + guardians + waits + fate


def key_signatures(asked: dict) -> bytes:
    of_keys = listed(asked["keySignatures"], "key", "signature")
    return of_keys + listed(asked["walletSignatures"], "wallet", "signature")


def round_value(value: dict) -> bytes:
    return u8(value["slot"]) + raw(value["digest"])


def contradiction(both: dict) -> bytes:
    if "proposals" in both:
        ones = [raw(one["payload"]) + u32(one["length"]) + raw(one["signature"]) for one in both["proposals"]]
        return u8(0) + b"".join(ones)
    if "commits" in both:
        ones = [raw(one["superblock"]) + raw(one["root"]) + raw(one["signature"]) for one in both["commits"]]
        return u8(1) + b"".join(ones)
    if "round_votes" in both:
        values = [one["value"] and round_value(one["value"]) for one in both["round_votes"]]
        ones = [option(value) + raw(one["signature"]) for value, one in zip(values, both["round_votes"], strict=True)]
        return u8(2) + u32(both["round"]) + u8(["prevote", "precommit"].index(both["kind"])) + b"".join(ones)
    ones = []
    for one in both["round_proposals"]:
        valid = None if one["valid_round"] is None else u32(one["valid_round"])
        ones.append(round_value(one["value"]) + option(valid) + raw(one["signature"]))
    return u8(3) + u32(both["round"]) + b"".join(ones)


def body(vector: dict) -> bytes:
    who = u64(vector["chain"]) + raw(vector["account"]) + u64(vector["sequence"]) + u64(vector["until"])
    return who + operation(vector["operation"])


def public(secret: Ed25519PrivateKey) -> bytes:
    return secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def names(vector: dict) -> str:
    return f"{vector['operation']['type']}-{vector['chain']}"


@pytest.mark.parametrize("vector", VECTORS, ids=names)
def test_a_transaction_is_made_as_the_specification_says(vector: dict) -> None:
    secret = Ed25519PrivateKey.from_private_bytes(raw(vector["seed"]))
    signer = public(secret)
    assert signer == raw(vector["signer"])
    assert derived("walras 2026 ed25519 address v1", signer)[:20] == raw(vector["account"])
    made = body(vector)
    assert made == raw(vector["body"])
    signed = b"walras native transaction v3\0" + raw(vector["network"]) + made
    assert signed == raw(vector["signing_bytes"])
    assert derived("walras 2026 native transaction id v4", made + signer) == raw(vector["id"])
    signature = secret.sign(signed)
    assert signature == raw(vector["signature"])
    assert made + u8(0) + signer + signature == raw(vector["transaction"])


@pytest.mark.parametrize("vector", PUBLISHED["typed_data"], ids=lambda vector: vector["typed_data"]["primaryType"])
def test_typed_data_is_carried_as_the_specification_says(vector: dict) -> None:
    made, network = raw(vector["body"]), raw(vector["network"])
    assert made[:44] == u64(31337) + raw(vector["account"]) + u64(vector["sequence"]) + u64(vector["until"])
    assert derived("walras 2026 typed data transaction id v3", made + network) == raw(vector["id"])
    assert made + u8(1) + network + raw(vector["signature"]) == raw(vector["transaction"])


@pytest.mark.parametrize("vector", PUBLISHED["requests"], ids=lambda vector: vector["typed_data"]["primaryType"])
def test_a_request_of_a_policy_is_made_as_the_specification_says(vector: dict) -> None:
    last, network = raw(vector["last"]), raw(vector["network"])
    tag = b"walras request of a policy v1\0" + network + last
    signed = raw(vector["signing_bytes"])
    assert signed.startswith(tag)
    made = signed[len(tag) :]
    assert derived("walras 2026 policy transaction id v1", made) == raw(vector["id"])
    salt = derived("walras 2026 salt of a policy v1", network + raw(vector["account"]) + last)
    assert salt == raw(vector["salt"]) == raw(vector["typed_data"]["domain"]["salt"])
    secrets = [Ed25519PrivateKey.from_private_bytes(raw(seed)) for seed in vector["seeds"]]
    pairs = sorted(public(secret) + secret.sign(signed) for secret in secrets)
    head = made + u8(2) + last + u32(len(pairs)) + b"".join(pairs) + u32(1)
    transaction = raw(vector["transaction"])
    assert transaction.startswith(head) and len(transaction) == len(head) + 20 + 64


@pytest.mark.parametrize("vector", PUBLISHED["consents"], ids=lambda vector: vector["by"])
def test_a_consent_to_a_change_of_keys_is_made_as_the_specification_says(vector: dict) -> None:
    kind = {"signers": "change", "guardians": "recovery"}[vector["by"]]
    change = key_change(vector["typed_data"]["message"] | weights_of(vector))
    assert change == raw(vector["change"])
    assert derived(f"walras 2026 {kind} of keys v1", change) == raw(vector["change_id"])
    signed = f"walras {kind} of keys v1\0".encode() + raw(vector["network"]) + change
    assert signed == raw(vector["signing_bytes"])
    secret = Ed25519PrivateKey.from_private_bytes(raw(vector["seed"]))
    assert secret.sign(signed) == raw(vector["key_signature"])


def weights_of(vector: dict) -> dict:
    """Lists of signers whose weights are numbers: typed data has text."""
    message = vector["typed_data"]["message"]
    return {name: [one | {"weight": int(one["weight"])} for one in message[name]] for name in ("keys", "wallets")}


def test_a_stake_proves_that_it_has_the_key() -> None:
    stakes = [vector for vector in VECTORS if vector["operation"]["type"] == "stake"]
    assert stakes
    for vector in stakes:
        asked = vector["operation"]
        message = u64(vector["chain"]) + raw(vector["account"])
        digest = derived("walras 2026 validator key possession v1", message)
        Ed25519PublicKey.from_public_bytes(raw(asked["key"])).verify(raw(asked["possession"]), digest)


def test_a_session_key_agrees() -> None:
    sessions = [vector for vector in VECTORS if vector["operation"]["type"] == "authorize_session"]
    assert sessions
    for vector in sessions:
        asked = vector["operation"]
        message = raw(vector["network"]) + raw(vector["account"]) + u32(asked["slot"]) + raw(asked["key"])
        signed = b"walras session key possession v1\0" + message
        Ed25519PublicKey.from_public_bytes(raw(asked["key"])).verify(raw(asked["possession"]), signed)


def statements(asked: dict) -> list[tuple[bytes, bytes]]:
    """The digest that each of two contradictory statements signs, and its signature."""
    scope = raw(asked["network"]) + u64(asked["epoch"])
    height, slot, both = u64(asked["height"]), u8(asked["member"]), asked["contradiction"]
    found = []
    for one in both.get("proposals", []):
        message = scope + height + slot + raw(one["payload"]) + u32(one["length"])
        found.append((derived("walras 2026 consensus proposal v1", message), raw(one["signature"])))
    for one in both.get("commits", []):
        message = scope + height + raw(one["superblock"]) + raw(one["root"])
        found.append((derived("walras 2026 consensus commit v1", message), raw(one["signature"])))
    for one in both.get("round_votes", []):
        kind = u8(["prevote", "precommit"].index(both["kind"]))
        message = scope + height + u32(both["round"]) + kind + option(one["value"] and round_value(one["value"]))
        found.append((derived("walras 2026 consensus tendermint vote v1", message), raw(one["signature"])))
    for one in both.get("round_proposals", []):
        valid = None if one["valid_round"] is None else u32(one["valid_round"])
        message = scope + height + u32(both["round"]) + round_value(one["value"]) + option(valid)
        found.append((derived("walras 2026 consensus tendermint proposal v1", message), raw(one["signature"])))
    return found


def test_both_statements_of_an_accusation_are_signed_by_one_validator() -> None:
    accusations = [vector["operation"] for vector in VECTORS if vector["operation"]["type"] == "accuse"]
    assert accusations
    for asked in accusations:
        seed = bytes((asked["member"] * 31 + at) % 256 for at in range(32))
        validator = Ed25519PrivateKey.from_private_bytes(seed).public_key()
        both = statements(asked)
        assert len(both) == 2
        for digest, signature in both:
            validator.verify(signature, digest)


@pytest.mark.parametrize("vector", PUBLISHED["state_roots"])
def test_a_state_root_is_made_of_its_parts_as_the_specification_says(vector: dict) -> None:
    parts = vector["parts"]
    tags = [part["tag"] for part in parts]
    assert tags == sorted(set(tags)) and {0, 1, 2, 5} <= set(tags)
    made = u32(len(parts)) + b"".join(u8(part["tag"]) + raw(part["root"]) for part in parts)
    assert made == raw(vector["bytes"])
    assert derived("walras 2026 state root v4", made) == raw(vector["root"])


VENUE = json.loads((Path(__file__).resolve().parents[3] / "docs" / "venue-vectors.json").read_text())


def u16(value: int) -> bytes:
    return value.to_bytes(2, "little")


def i64(value: int | str) -> bytes:
    return int(value).to_bytes(8, "little", signed=True)


def order_number(number: dict) -> bytes:
    return u32(number["incarnation"]) + u16(number["day"]) + u32(number["reference"])


def venue_order(order: dict) -> bytes:
    until = None if order["until_ms"] is None else u64(order["until_ms"])
    kinds = u8(order["side"]) + u8(order["life"]) + u8(order["self_trade"])
    size = u32(order["tick"]) + u32(order["lots"]) + u64(order["expiry"]) + option(until)
    numbers = order_number(order["number"]) + order_number(order["floor"])
    return u32(order["market"]) + numbers + kinds + size + u32(order["fee_cap_ppm"])


def fill_terms(fill: dict) -> bytes:
    fees = i64(fill["fee_buy"]) + i64(fill["fee_sell"])
    return u32(fill["lots"]) + u32(fill["tick"]) + fees + u8(fill["taker"])


def node(left: bytes, right: bytes) -> bytes:
    return derived("walras 2026 venue tree node v1", left + right)


def root(leaves: list[bytes]) -> bytes:
    while len(leaves) > 1:
        leaves = [node(left, right) for left, right in zip(leaves[::2], leaves[1::2], strict=True)]
    return leaves[0]


def test_a_settle_of_a_venue_is_made_as_the_specification_says() -> None:
    about = raw(VENUE["network"]) + u32(VENUE["venue"])
    orders, digests = b"", []
    for order in VENUE["orders"]:
        key, made, signature = raw(order["key"]), venue_order(order), order["signature"]
        signed = b"walras venue order v1\0" + about + made
        assert signed == raw(order["signing_bytes"])
        digests.append(derived("walras 2026 venue order v1", about + key + made))
        assert digests[-1] == raw(order["digest"])
        if signature is not None:
            Ed25519PublicKey.from_public_bytes(key).verify(raw(signature), signed)
        orders += key + made + option(None if signature is None else raw(signature))
    fills, leaves = b"", []
    for fill in VENUE["fills"]:
        fills += u16(fill["buy"]) + u16(fill["sell"]) + fill_terms(fill)
        sides = digests[fill["buy"]] + digests[fill["sell"]]
        leaves.append(derived("walras 2026 venue fill v1", sides + fill_terms(fill)))
    assert leaves == [raw(leaf) for leaf in VENUE["leaves"]]
    head = u32(VENUE["venue"]) + u32(VENUE["incarnation"]) + u64(VENUE["from"])
    lists = u32(len(VENUE["orders"])) + orders + u32(len(VENUE["fills"])) + fills
    assert head + lists == raw(VENUE["settle"])


def test_the_tree_of_fills_of_a_venue_is_made_as_the_specification_says() -> None:
    tree, leaves = VENUE["tree"], [raw(leaf) for leaf in VENUE["leaves"]] * 5
    assert tree["count"] == len(leaves) == 10
    peaks = [root(leaves[:8]), root(leaves[8:])]
    assert peaks == [raw(peak) for peak in tree["peaks"]]
    assert u64(10) + u32(2) + b"".join(peaks) == raw(tree["bytes"])
    below, index = leaves[tree["index"]], tree["index"]
    for sibling in map(raw, tree["path"]):
        below = node(sibling, below) if index % 2 else node(below, sibling)
        index //= 2
    assert below == peaks[0] and len(tree["path"]) == 3


def test_a_report_of_a_venue_is_signed_as_the_specification_says() -> None:
    report, network = VENUE["report"], raw(VENUE["network"])
    place = u32(VENUE["venue"]) + u32(VENUE["incarnation"]) + u64(report["index"])
    told = place + raw(VENUE["leaves"][1]) + raw(report["account"])
    assert b"walras venue report v1\0" + network + told == raw(report["signing_bytes"])
    key = raw(report["key"])
    Ed25519PublicKey.from_public_bytes(key).verify(raw(report["signature"]), raw(report["signing_bytes"]))
    assert told + key + raw(report["signature"]) == raw(report["bytes"])
    possession = network + u32(VENUE["venue"]) + raw(report["account"]) + key
    assert b"walras venue trading key v1\0" + possession == raw(VENUE["possession"])


def test_reports_of_a_step_are_made_as_the_specification_says() -> None:
    step, network = VENUE["step"], VENUE["network"]
    leaves = [u64(leaf["index"]) + raw(leaf["leaf"]) + raw(leaf["account"]) for leaf in step["leaves"]]
    levels = tree("walras 2026 venue reports tree v1", leaves)
    assert levels[-1] == [raw(step["root"])]
    place = u32(VENUE["venue"]) + u32(VENUE["incarnation"])
    times = u64(step["number"]) + u64(step["clock_ms"]) + u32(step["size"])
    header = b"walras venue step v1\0" + raw(network) + place + times + raw(step["root"])
    assert header == raw(step["signing_bytes"])
    key = raw(VENUE["report"]["key"])
    Ed25519PublicKey.from_public_bytes(key).verify(raw(step["signature"]), header)
    for at, leaf in enumerate(leaves):
        path = path_of(levels, at)
        made = u8(1) + place + leaf + key + raw(step["signature"]) + times + u32(at) + u32(len(path)) + b"".join(path)
        assert made == raw(step["reports"][at])


def tree(name: str, leaves: list[bytes]) -> list[list[bytes]]:
    """The levels of a tree, the leaves first: the last node of an odd level is promoted unchanged."""
    keys = [derived(name, bytes([tag])) for tag in (0, 1)]
    levels = [[blake3(leaf, key=keys[0]).digest() for leaf in leaves]]
    while len(levels[-1]) > 1:
        row = levels[-1]
        pairs = [row[at : at + 2] for at in range(0, len(row), 2)]
        levels.append([blake3(b"".join(pair), key=keys[1]).digest() if len(pair) == 2 else pair[0] for pair in pairs])
    return levels


def path_of(levels: list[list[bytes]], index: int) -> list[bytes]:
    path = []
    for row in levels[:-1]:
        path += [row[index ^ 1]] if index ^ 1 < len(row) else []
        index //= 2
    return path


def test_a_list_of_orders_is_signed_and_shown_as_the_specification_says() -> None:
    about, seed, key = VENUE["list"], raw(VENUE["list"]["seed"]), raw(VENUE["list"]["key"])
    made, salts = [venue_order(order) for order in about["orders"]], []
    for at, order in enumerate(about["orders"]):
        replaced = option(None if order["replaces"] is None else order_number(order["replaces"]))
        salts.append(derived("walras 2026 venue list salt v1", seed + u8(at) + replaced)[:16])
    levels = tree("walras 2026 venue orders tree v1", [salt + order for salt, order in zip(salts, made, strict=True)])
    place = raw(VENUE["network"]) + u32(VENUE["venue"])
    header = b"walras venue order list v1\0" + place + u8(len(made)) + levels[-1][0]
    signature = raw(about["signature"])
    Ed25519PublicKey.from_public_bytes(key).verify(signature, header)
    for at, order in enumerate(about["orders"]):
        assert raw(order["header"]) == header
        assert raw(order["digest"]) == derived("walras 2026 venue order v1", place + key + made[at])
        path = b"".join(path_of(levels, at))
        assert raw(order["settled"]) == key + made[at] + u8(2) + signature + salts[at] + u8(3) + u8(at) + path


def operator(of: dict) -> bytes:
    return raw(of["account"]) + raw(of["report_key"])


def digests(all_of_them: list[str]) -> bytes:
    return u32(len(all_of_them)) + b"".join(map(raw, all_of_them))


def ended(end: dict, venue: int) -> bytes:
    keys = digests(end["report_keys"])
    record = u32(end["incarnation"]) + raw(end["tree"]) + keys + u64(end["height"]) + u64(end["time_ms"])
    leaf = derived("walras 2026 venue ended incarnation v1", u32(venue) + record)
    assert leaf == raw(end["leaf"])
    return record + digests(end["path"])


def mandate(asked: dict) -> bytes:
    markets = b"".join(u32(market) + u32(low) + u32(high) for market, low, high in asked["markets"])
    caps = b"".join(u32(asset) + u64(units) for asset, units in asked["caps"])
    scope = u8(["venue", "batch", "cancel"].index(asked["scope"]))
    return scope + u32(len(asked["markets"])) + markets + u32(len(asked["caps"])) + caps


def venue_operation(asked: dict) -> bytes:
    venue = u32(asked["venue"]) if "venue" in asked else b""
    match asked["type"]:
        case "open":
            cap = u32(asked["fee_cap_ppm"])
            return u8(0) + venue + operator(asked["operator"]) + cap + u64(asked["bond"])
        case "list":
            pair = u32(asked["market"]) + u32(asked["base"]) + u32(asked["quote"])
            sizes = u64(asked["lot_units"]) + u64(asked["tick_units"]) + u32(asked["lots_max"])
            return u8(1) + venue + pair + sizes + u32(asked["fee_cap_ppm"]) + u64(asked["penalty"])
        case "fence":
            return u8(2) + venue + u32(asked["incarnation"])
        case "change_operator":
            return u8(3) + venue + operator(asked["from"]) + operator(asked["to"])
        case "bond":
            return u8(4) + venue + u64(asked["units"])
        case "unbond":
            return u8(5) + venue + u64(asked["units"])
        case "settle":
            return u8(6) + raw(VENUE["settle"])
        case "deposit":
            return u8(7) + venue + u32(asked["asset"]) + u64(asked["units"])
        case "collect":
            return u8(8) + venue + u32(asked["asset"]) + u64(asked["units"])
        case "authorize":
            signed = raw(VENUE["network"]) + venue + raw(asked["account"]) + raw(asked["key"])
            key = Ed25519PublicKey.from_public_bytes(raw(asked["key"]))
            key.verify(raw(asked["possession"]), b"walras venue trading key v1\0" + signed)
            return u8(9) + venue + raw(asked["key"]) + mandate(asked) + raw(asked["possession"])
        case "revoke":
            return u8(10) + venue + raw(asked["key"])
        case "raise_floor":
            return u8(11) + venue + raw(asked["key"]) + order_number(asked["floor"])
        case "recall":
            return u8(16) + venue + u32(asked["asset"]) + raw(asked["holder"])
        case "accuse":
            by_tree = "leaf" in asked
            proof = u8(0) + raw(asked["leaf"]) + digests(asked["path"]) if by_tree else u8(1) + raw(asked["other"])
            end = option(ended(asked["ended"], asked["venue"]) if by_tree else None)
            return u8(12) + raw(asked["report"]) + proof + end
        case "accuse_step":
            by_tree = "leaf" in asked
            proof = u8(0) + raw(asked["leaf"]) + digests(asked["path"]) if by_tree else u8(1) + raw(asked["other"])
            end = option(ended(asked["ended"], asked["venue"]) if by_tree else None)
            return u8(14) + raw(asked["report"]) + proof + end
        case "claim_step":
            end = ended(asked["ended"], asked["venue"])
            return u8(15) + raw(asked["report"]) + end + raw(asked["buy"]) + raw(asked["sell"]) + raw(asked["fill"])
        case "claim":
            end = ended(asked["ended"], asked["venue"])
            return u8(13) + raw(asked["report"]) + end + raw(asked["buy"]) + raw(asked["sell"]) + raw(asked["fill"])
    raise AssertionError(asked["type"])


def venue_fees(asked: dict, until: int) -> int:
    paid = len(raw(asked["bytes"]))
    match asked["type"]:
        case "settle":
            paid += 256 * len(VENUE["fills"])
            for order in (order for order in VENUE["orders"] if order["signature"] is not None):
                paid += 512 + 256 * (max(int(order["expiry"]) - until, 0) // 1024 + 1)
        case "accuse" | "claim" | "accuse_step" | "claim_step":
            paid += 3 * 512
        case "authorize" | "list":
            paid += 16 * 1024
        case "open":
            paid += 1024 * 1024
    return max((paid + 1023) // 1024, 1)


@pytest.mark.parametrize("asked", VENUE["operations"], ids=lambda asked: asked["type"])
def test_an_operation_at_a_venue_is_made_as_the_specification_says(asked: dict) -> None:
    assert venue_operation(asked) == raw(asked["bytes"])
    assert venue_fees(asked, 100) == int(asked["fees"])
