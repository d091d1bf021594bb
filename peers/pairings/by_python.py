"""What Python's libraries say of the vectors' second envelope: see rows.py."""

import json
import sys
from collections.abc import Callable
from importlib.metadata import version

VECTORS = json.load(open(sys.argv[1]))
MADE = VECTORS["made"][1]


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def said(package: str, element: bytes, read: Callable[[str, bytes], object]) -> None:
    wrong = []
    for refused in VECTORS["refused_points"]:
        try:
            read(refused["what"], raw(refused["bytes"]))
            wrong.append(f"{refused['why']} ({'G1' if refused['what'] == 'opening_key' else 'G2'})")
        except Exception:  # Each library has its own word for a point that it refuses.
            continue
    print("|".join([f"{package} {version(package)} (Python)", element.hex(), *wrong]))


def by_arkworks() -> None:
    from py_arkworks_bls12381 import GT, G1Point, G2Point

    kinds = {"opening_key": G1Point, "point": G2Point}
    element = GT.pairing(
        G1Point.from_compressed_bytes(raw(MADE["opening_key"])), G2Point.from_compressed_bytes(raw(MADE["point"]))
    )
    said("py_arkworks_bls12381", raw(str(element)), lambda what, point: kinds[what].from_compressed_bytes(point))


def by_py_ecc() -> None:
    from py_ecc.bls.g2_primitives import pubkey_to_G1, signature_to_G2
    from py_ecc.optimized_bls12_381 import pairing

    kinds = {"opening_key": pubkey_to_G1, "point": signature_to_G2}
    element = pairing(signature_to_G2(raw(MADE["point"])), pubkey_to_G1(raw(MADE["opening_key"])))
    coefficients = b"".join(int(one).to_bytes(48, "big") for one in element.coeffs)
    said("py_ecc", coefficients, lambda what, point: kinds[what](point))


by_arkworks()
by_py_ecc()
