"""The payment lane by docs/lane-specification.md alone: nothing here comes from the node or the rest of the package.

All of it is pure: bytes in, bytes or a refusal out, without clock, socket or disk.
"""
