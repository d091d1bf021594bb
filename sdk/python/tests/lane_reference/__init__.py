"""The payment lane by docs/lane-specification.md alone: nothing here comes from the node or from the package.

Everything but `shell` is pure: bytes in, bytes or a refusal out, without clock, socket or disk. `shell` moves bytes.
"""
