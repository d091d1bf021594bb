//! Why a withdrawal or a post about the payment lane is refused.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::ESCROW =>
    /// The post about the payment lane is too long.
    LANE_POST_TOO_LONG: invalid, "lane_post_too_long",
        Malformed::LanePostTooLong.text();
    /// The chain has no payment lane.
    NO_LANE: invalid, "no_lane",
        "this chain has no payment lane; see `lane` in the genesis";
    /// The payment lane does not carry the withdrawn asset.
    NOT_IN_LANE: invalid, "not_in_lane",
        "the payment lane does not carry this asset; see `lane.assets` in the genesis";
    /// The withdrawal is below the least output.
    WITHDRAWS_TOO_LITTLE: invalid, "withdraws_too_little",
        "the withdrawal is below the least output of its asset; see `lane.assets` in the genesis";
    /// The post about the lane cannot be decoded.
    BAD_LANE_POST: invalid, "bad_lane_post",
        "the post about the payment lane cannot be decoded, or is for another network";
    /// A signature or certificate of the post is invalid.
    UNPROVEN_LANE_POST: invalid, "unproven_lane_post",
        "the post's certificate or one of its signatures is invalid";
    /// The bid for opening a case is too low.
    WRONG_CASE_DEPOSIT: invalid, "wrong_case_deposit",
        "the bid is below the lowest one for opening a case; see `lane.case_deposit` in the genesis";
    /// The certificate is redeemed too early or too late.
    NOT_REDEEMABLE: refused, "not_redeemable",
        "certificates are redeemable from their epoch until three lane epochs later";
    /// An input of the payment was credited to its owner.
    VOID_PAYMENT: refused, "void_payment",
        "the payment is void: an input was credited to its owner by a verdict";
    /// The case is opened too early or too late.
    CASE_TOO_LATE: refused, "case_too_late",
        "a case about an output can be opened until the middle of the second lane epoch after its own";
    /// The case is about an output that the ledger did not create.
    UNKNOWN_OUTPUT: refused, "unknown_output",
        "the ledger backs no such output; show the certificate of the payment that created it";
    /// The output of the vote or view has no open case.
    NO_CASE: refused, "no_case",
        "there is no open case about this output";
    /// The vote to halt is for another round than the present one.
    WRONG_HALT_ROUND: refused, "wrong_halt_round",
        "the vote to halt is for another epoch or round than the present one; see /v1/lane";
    /// Lane keys are registered for another epoch than the next one, or a second time.
    WRONG_LANE_KEYS: refused, "wrong_lane_keys",
        "a member of the payment lane can register new keys once, for the next lane epoch only; see /v1/lane";
    /// No key generation of the lane expects the dealing or complaint.
    NOT_AWAITED: refused, "not_awaited",
        "no key generation of the lane expects this dealing or complaint now; see `lane.bls` in the genesis";
    /// A post that is marked as a member's duty is none, or is done already.
    NO_LANE_DUTY: refused, "no_lane_duty",
        "the post is no duty that this account's member still has in the lane: send it without the mark of a duty";
    /// The post alone costs more signature checks than a sub-block has for posts.
    LANE_POST_OVER_QUOTA: invalid, "lane_post_over_quota",
        "the post needs more than 1024 signature checks, and no block carries it: contest the outputs in several posts";
    /// The lane takes no deposits of this asset in its present epoch, on a chain where votes decide that.
    NO_WAY_IN: refused, "no_way_in",
        "the payment lane takes no deposits of this asset in this lane epoch; see /v1/lane";
    /// The deposit is below the least output of the present lane epoch, on a chain where votes decide that.
    DEPOSITS_TOO_LITTLE: refused, "deposits_too_little",
        "the deposit is below the least output of its asset in this lane epoch; see /v1/lane";
    /// An issuer controls the asset, so that the lane cannot carry it.
    CONTROLLED_IN_LANE: refused, "controlled_in_lane",
        "its issuer can freeze this asset, and outputs of the payment lane belong to unknown keys: it carries none such";
    /// The lane knows as many assets as it may.
    LANE_ASSETS_FULL: refused, "lane_assets_full",
        "the payment lane knows 256 assets, and none ever leaves it: it takes no other one";
    /// The vote would add a limit on outflow, or remove one.
    OUTFLOW_FIXED: refused, "outflow_fixed",
        "an asset has a limit on what leaves the lane from its first terms on, or never: keep that of /v1/lane";
}
