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
}
