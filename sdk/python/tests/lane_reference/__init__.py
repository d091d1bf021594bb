"""What only members and the ledger do in the payment lane, by docs/lane-specification.md alone.

What purses do is `walras.purse.lane`: together they implement the page, and share no code with the node.
"""
