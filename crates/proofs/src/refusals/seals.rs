//! Why a seat's post about the committee's sealing key does not count.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::SEALS =>
    /// The post is too long, or has a number.
    SEAL_POST: invalid, "seal_post",
        Malformed::SealPost.text();
    /// The chain has no sealing keys.
    NO_SEALS: invalid, "no_seals",
        "the committee of this chain makes no sealing key: its genesis has no terms of seals";
    /// The bytes are no post.
    BAD_SEAL_POST: invalid, "bad_seal_post",
        "the bytes are no post about a sealing key that a seat of this committee makes at this step";
    /// The post is about another key than the one that is being made.
    OTHER_SEAL_KEY: refused, "other_seal_key",
        "the post is about another sealing key than the one that is being made: /v1/seal says its number";
    /// The account has no seat in the committee that makes the key, or did not register, or was struck.
    NOT_A_SEAT: refused, "not_a_seat",
        "the account takes no part in making this sealing key: it has no seat in the committee, did not register a key \
         in time, or has revealed a share";
    /// It is not the step for the post.
    OTHER_SEAL_STEP: refused, "other_seal_step",
        "the making of the sealing key is at another step: /v1/seal says which";
    /// The seat has posted this.
    SEAL_POSTED: refused, "seal_posted",
        "the seat has posted this already, or what it complains about is decided: its first post counts, sound or not";
}
