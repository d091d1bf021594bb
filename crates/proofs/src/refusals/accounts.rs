//! Why an operation on an account is refused.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::BALANCES =>
    /// The account does not exist.
    UNKNOWN_ACCOUNT: refused, "unknown_account",
        "the account does not exist; the first payment to it creates it";
    /// The signer's key does not control the account.
    WRONG_SIGNER: refused, "wrong_signer",
        "the signer's key does not control the account";
    /// The sequence number has been used.
    SEQUENCE_USED: refused, "sequence_used",
        "the sequence number has been used; take an unused one";
    /// The sequence number is 64 or more below the highest used one.
    SEQUENCE_TOO_OLD: refused, "sequence_too_old",
        "the sequence number is too old; take one above the account's highest";
    /// The sequence number is more than 64 above the highest used one.
    SEQUENCE_TOO_FAR: refused, "sequence_too_far",
        "the sequence number is more than 64 above the account's highest used one";
    /// Two transactions of the account use one sequence number.
    SEQUENCE_CONFLICT: refused, "sequence_conflict",
        "another transaction of the account with this sequence number counts; use the next free number";
    /// The address of a new account is not the hash of its key.
    ADDRESS_NOT_OF_KEY: invalid, "address_not_of_key",
        Malformed::AddressNotOfKey.text();
    /// The account to create already exists.
    ACCOUNT_EXISTS: refused, "account_exists",
        "the account to create already exists";
    /// Two transactions of the account change its key.
    KEY_CONFLICT: refused, "key_conflict",
        "two transactions change the account's key in one block; all of the account's but its cancels are removed";
    /// The account pays itself.
    SELF_PAYMENT: invalid, "self_payment",
        Malformed::SelfPayment.text();
    /// The payment is to the address of a token.
    RESERVED_ADDRESS: invalid, "reserved_address",
        "the address is reserved for the token of an asset; nobody could move what it holds";
    /// The account's debits exceed its balance.
    OVERDRAFT: refused, "overdraft",
        "the account's transactions would spend more than its balance; in a block all but its cancels are removed";
    /// The account has no session key in the slot of the number.
    UNKNOWN_SESSION: refused, "unknown_session",
        "the account has no session key in that slot; the slot of a number is the number divided by 2^43";
    /// The transaction is not signed by the session key of its number's slot.
    WRONG_SESSION_KEY: refused, "wrong_session_key",
        "the signer is not the session key of the slot; the slot of a number is the number divided by 2^43";
    /// The session key may not do this.
    SESSION_SCOPE: refused, "session_scope",
        "a session key may not do this: it cancels and, with scope `trade`, places offers; sign with the account's key";
    /// The session key has ended.
    SESSION_ENDED: refused, "session_ended",
        "the session key has ended: its last height is past, or the account has another key; authorise a new one";
    /// The dead man's timer of the session key is over.
    SESSION_LAPSED: refused, "session_lapsed",
        "the session key's timer is over: it may only cancel until a `session_alive` raises the height";
    /// The session key would use more than its cap.
    SESSION_CAP: refused, "session_cap",
        "the session key's transactions would use more of an asset than its cap, fees included; its cancels may stand";
    /// The session key would have too many offers.
    SESSION_OFFERS: refused, "session_offers",
        "a session key has at most 4096 open offers: cancel some, or use another slot";
    /// The session key replaces an offer of another slot.
    SESSION_REPLACES: refused, "session_replaces",
        "a session key replaces only offers that it placed itself; it may cancel the others";
    /// A session key is authorised in a slot that is not the next one.
    SESSION_SLOT: refused, "session_slot",
        "a session key takes the next slot of its account, one above the last one given: read the account again";
    /// The key already acts for the account.
    SESSION_KEY_TAKEN: refused, "session_key_taken",
        "the key already controls the account or is one of its session keys: make a new key for each session";
    /// The account has as many session keys as it may.
    SESSIONS_FULL: refused, "sessions_full",
        "the account has 16 session keys: revoke one";
    /// The terms of a session key are out of bounds.
    SESSION_TERMS: invalid, "session_terms",
        Malformed::SessionTerms.text();
    /// The heights of a session key are past or too far ahead.
    SESSION_HEIGHTS: refused, "session_heights",
        "`until` and `alive` of a session key lie between the block's height and 4194304 heights after it";
    /// The timer of a session key is not raised.
    SESSION_THROUGH: refused, "session_through",
        "`through` is 0, or above the block's height and the present timer, and at most the session's `until`";
    /// As many offers as may lapse at that height do.
    SESSION_CROWDED: refused, "session_crowded",
        "524288 offers of session keys end at that height already: raise the timer to another one, such as the next";
    /// The reference of a payment is not of its kind.
    REFERENCE: invalid, "reference",
        Malformed::Reference.text();
    /// A payment without a reference to an account that needs one.
    NEEDS_REFERENCE: refused, "needs_reference",
        "the receiving account takes no payment without a reference: ask it for one, and send `pay_referenced`";
}
