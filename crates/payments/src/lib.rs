//! The payment lane: Accept (Mathys, Schmid, Sliwinski, Wattenhofer), payments that a quorum of signatures confirms
//! in one round trip, without consensus and without an order.
//!
//! Everything here is pure: inputs in, effects out. There is no clock, no socket and no disk. [`LaneValidator`] is
//! one shard of one validator in one home epoch; a validator runs one for each shard and each epoch that is still
//! active. [`Bridge`] is the lane's state machine on the ledger.
//!
//! | topic | see |
//! |---|---|
//! | epochs without forwarding spent sets (protocol H), halts | `epochs.rs`: [`HomePhase`], [`LaneClock`] |
//! | fresh keys for each epoch | `registration.rs`: [`LaneRegistration`] |
//! | contested outputs (protocol R), its arguments, its model | `resolve.rs`: [`Resolver`], `resolve/model.rs` |
//! | views with proofs, late verdicts, lives of committees; their model | `verdicts.rs`; `tests/late_verdicts` |
//! | withdrawals, redemptions, escrow; footprints of the ledger | `bridge.rs`: [`Bridge`], `outflow.rs` |
//! | aggregated signatures | `bls.rs`: [`BlsAggregate`] |
//! | threshold signatures, key generation without a dealer | `threshold.rs`: [`KeyGeneration`], [`GroupKey`] |
//! | key generation over the ledger | `bridge/boards.rs` |
//! | trees that a broker makes for many clients | `broker.rs`: [`LaneBroker`] |
//! | evidence, watchers, the audit | `evidence.rs`, `watch.rs`, `audit.rs` |
//!
//! # The protocol
//!
//! *n* validators, at most *f* = ⌊(n−1)/3⌋ of them Byzantine. A certificate is *q* = ⌊(n+f)/2⌋ + 1 signatures
//! ([`Quorums`]). An output is units of one asset for a key or for an account of the ledger. A payment spends outputs
//! of one owner and one home epoch and creates others. Its digest is a hash of all but the signature.
//!
//! A **client** ([`build_payment`]) signs the digest, syncs the request to its own disk and sends it to its owner's
//! shard of each validator. It repeats these bytes until q validators have answered.
//!
//! A **validator**, on a *payment*:
//!
//! 1. makes the cheap checks: layout, bounds, network, least amounts, sums, home epoch, shard;
//! 2. looks up each input in the spent set and confirms each hit in its log. If all inputs are reserved for this very
//!    payment, it continues with 6. If an input is reserved for another one, it refuses;
//! 3. checks that its committee signs such payments now ([`HomePhase`]), that the lane is not halted, that no input is
//!    an output of a barred payment, and the owner's signature;
//! 4. checks the inputs: hashes of all of them first, then the certificates of payments of which its log has none;
//! 5. reserves all inputs and adds a record to the open batch of its log;
//! 6. adds the digest to the open tree.
//!
//! On a *tick*, or when a tree has as many leaves as configured, it closes the open trees and appends the batch to
//! its log. On *synced*, it signs each tree whose position is durable, and answers each leaf with signature and path.
//! On a *failed sync* it signs nothing more. On a *restart* it reads its log, which contains every payment that it
//! may have signed.
//!
//! On a *settlement* (a payment's summary and its certificate) it verifies the certificate, unless its log has one of
//! this payment. It writes it and after it an acknowledgement into its log, and signs it in a tree of that kind. The
//! certificates of the inputs of a payment that it signs are in its log before that payment, too.
//!
//! On a *query* that an output's owner signed, it returns the payment that the output is reserved for, with the
//! owner's signature. A restored wallet queries a quorum before it spends: among the answers is one of a correct
//! signer of every certificate.
//!
//! On a *case* of its home, it votes: for the payment that the output is reserved for, otherwise for the output's
//! exit, for which it then reserves it. On *candidates*, each shard bars them, durably, and reports which it had
//! accepted, with the certificate. When all shards of the validator have, it signs one view, and posts it together with
//! that certificate. On a *verdict* it lifts the bar of a payment that stands. At the end of its third epoch, or later
//! where a case needs it, it destroys its key.
//!
//! A client that asks for an answer under the *BLS scheme* gets a separate signature, by the shard's BLS key or by
//! the validator's share of the group's key. On a broker's *batch* it confirms what it can and signs the broker's
//! tree together with the list of what it excludes.
//!
//! A **recipient** verifies output, path and certificate with only the committee's keys. That is a *fast* receipt
//! ([`FastReceipt`]): no other payment of this money can be confirmed. With q acknowledgements it is *settled*
//! ([`SettledReceipt`]): final.
//!
//! # Properties (§3.1)
//!
//! * **No double spending.** No two payments that share an input are both certified. Two certificates share a correct
//!   validator, and it reserves an output once, durably, before it signs.
//! * **Finality.** Only the owner's signature spends an output.
//! * **Liveness.** A payment whose owner signs no other payment of its inputs is certified once n − f ≥ q correct
//!   validators get it. Nothing that others send can reserve its inputs. A resent request gets the same answer, also
//!   while the sync is in flight and after a restart.
//! * **Frugality.** A refused request leaves no state but the count of costly checks, which each tick clears.
//!
//! # Layouts
//!
//! Integers are little-endian. `H` is BLAKE3 in its key-derivation mode with a separate context for each use.
//!
//! ```text
//! payment     version 1 · inputs 1 · outputs 1 · home 8 · into 8 · network 32 · owner 32 · input[] · output[]
//! input       id 32 · asset 4 · amount 8                        ids ascend strictly
//! output      kind 1 (0 key, 1 account) · key 32 | account 20 and 12 zeros · asset 4 · amount 8
//! summary     home 8 · into 8 · owner 32 · H(input[]) 32 · outputs 1 · root of the tree of outputs 32
//! digest      H(version 1 · network 32 · summary)
//! output id   H(into 8 · digest 32 · index 1)
//!   deposit   H(network 32 · home 8 · account 20 · sequence 8)
//!   genesis   H(network 32 · home 8 · index 4)
//!
//! signed by an owner      "walras-lane\x01" · network 32 · home 8 · kind 1 (1) · digest 32
//!                         also 7 question, of an output's id
//! signed to register keys 8 registrar, 9 possession: see `registration.rs`; to make a group key 10: `threshold.rs`
//! signed by a validator   "walras-lane\x01" · network 32 · home 8 · kind 1 (2 confirmation, 3 acknowledgement)
//!                         · validator 1 · shard 2 · size 4 · position 8 · root 32
//!                         also 4 view, 5 vote to halt; 6 shared tree, whose root is a digest of root and exclusions
//!
//! answer      validator 1 · size 4 · index 4 · position 8 · signature 64 · path 32 each
//! certificate count 1 · answer[]                                exactly q, validators ascend strictly
//!             0 · 1 · aggregate                                 see `bls.rs`
//!             0 · (2 | 3) · ...                                 of a shared tree, see `broker.rs`
//!             0 · 4 · signature 48                              under the group's key, see `threshold.rs`
//! paid proof  summary · index 1 · path 32 each · certificate
//! request     1 · payment · signature 64 · (0 | 1 · paid proof) for each input
//!             2 · summary · certificate
//!             3 · count 2 · (length 4 · request)[]              a broker's batch of requests of kind 1
//!             4 · home 8 · owner 32 · output 32 · signature 64  which payment spends this output?
//!             5 · scheme 1 (2 BLS key, 3 share) · request       of kind 1 or 2, or of 3 with a BLS key
//! receipt     output · paid proof
//! ```
//!
//! The number of digests of a path follows from size and index. An answer names neither network, epoch, kind nor
//! shard: the verifier computes them, so that a signature made for another place is invalid. `record.rs` describes
//! the log's layout.
//!
//! # Deviations from the paper
//!
//! * **The quorum** is ⌊(n+f)/2⌋ + 1, not 2f+1. With n = 5 two sets of 2f+1 may share only one Byzantine validator.
//! * **Trees are over payments**, not over outputs: one signature confirms all outputs of a payment. Outputs are
//!   under a root inside the digest, so that a recipient need not see the change.
//! * **Trees need not be full.** They are closed by size or by a tick, since a pool that waits for its last member
//!   may wait forever. Odd nodes are promoted.
//! * **The naive scheme is a tree of one leaf.** The validator signs the same header in both schemes, and one verifier
//!   serves both. It costs two hashes.
//! * **Ids are hashes** of what created the output, never chosen. A payer that chooses ids could give its output the
//!   id of another's, and spending one would then freeze both.
//! * **Signed bytes name** protocol, version, network, home epoch, kind, validator, shard, tree size and log position.
//!   The paper signs bare roots, which any other protocol with the same key could produce.
//! * **Durable before signed**, and the same payment gets the same answer. The paper keeps its set in memory and does
//!   not define the answer to a retry.
//! * **Home epochs, deposits, settled receipts, several assets and fees** are not in the paper. In the design of
//!   epochs only the home committee ever signs a spend, so that no spent set is forwarded.
//! * **Contested outputs** are resolved by the ledger. In the paper, outputs that an owner signed twice stay frozen.
//! * **BLS signatures are aggregated** with a bitmap of signers by default. They verify as fast as those of §3.4 and
//!   are as short except for n/8 bytes. The threshold form is used in an epoch whose members generated a group key
//!   themselves, by a generation that reveals no share of a correct member. Otherwise fewer than q could make a
//!   certificate.
//! * **Shared trees.** In the paper each validator makes its own tree, so that a certificate holds q paths.
//! * **No concurrent spent map** (§4.2). A shard's set belongs to the one thread that also orders its log, and threads
//!   are added as shards, which share nothing. `walras-lab bench accept --name section-4.2-spent` compares such sets
//!   with one map behind a lock.
//! * **The best tree** ([`SchemeCosts::best_leaves`]) is the cheapest power of two by the formula of §3.3, computed in
//!   integers, not the real minimum rounded.
//!
//! # What a shell must do
//!
//! Feed the facts of certified blocks in their order: outputs, epochs, halts, cases, candidates, verdicts. A shard that
//! restarts, or starts late, takes them from a certified state: the outputs of its home, and the open cases before the
//! present epoch, so that no key is destroyed too early. Of the payments that it bars ([`LaneValidator::barred`]) it
//! also takes the confirmed ones ([`Resolver::confirms`]). Otherwise it refuses a confirmed payment for ever, because
//! the verdict came while it did not run.
//!
//! Create a log with [`new_log`] once, when a shard's key is registered, before its epoch begins. Apply effects in
//! order. Copy the log's tail into a new, synced file before [`LaneValidator::open`], and cut it to the length that
//! `open` returns. Say from which address each peer comes ([`LaneInput::Connected`]), and serve peers in turn. The log
//! alone cannot distinguish damage to the last synced batch from a torn write. So the shard looks for its own
//! signatures in every certificate it verifies; one above the end of its log mutes it. Ask the peers for
//! [`RootCache::highest`] before the shard starts.
//!
//! # Tests by property
//!
//! * completing the only transaction reported loses money, ours does not: `resolve`:
//!   `completing_the_only_reported_payment_spends_an_output_twice_and_ours_does_not`
//! * refunding after an epoch without a certificate loses money, ours does not: `resolve`:
//!   `refunding_what_has_no_certificate_after_an_epoch_pays_twice_and_ours_does_not`
//! * a child certified while a case opens, in another shard: `boundaries`:
//!   `a_child_certified_while_a_case_opens_in_another_shard_is_seen`
//! * verdicts reach shards that did not run: the same test; `sim`: the seeded mistake `ForgottenVerdict`
//! * signatures withheld over two boundaries: `boundaries`:
//!   `withheld_signatures_over_two_boundaries_complete_the_one_payment`
//! * one redemption in all sub-blocks, credited once: `boundaries`: `copies_of_a_redemption_are_credited_once`;
//!   `ledger`, `lane`: `one_redemption_in_all_sub_blocks_is_credited_once`
//! * redemption at the last height of c+3 and one above: `boundaries`:
//!   `the_last_height_of_the_third_epoch_after_redeems_and_the_next_does_not`; `ledger`, `lane`:
//!   `the_last_height_of_an_epoch_is_the_last_to_redeem`
//! * a retry while the sync is in flight, then power loss: `crash`:
//!   `a_retry_in_flight_then_a_power_cut_signs_one_payment_only`
//! * revealed shares of a group key are refused: `threshold`:
//!   `a_generation_with_revealed_shares_is_refused_beyond_f_and_their_signatures_always`
//! * a key generation through blocks, with a silent and a lying dealer, restarted at each height: `ledger`,
//!   `lane_group`: `members_make_a_group_key_although_one_lies_and_one_is_silent`
//! * rogue key, identity, wrong subgroup: `bls`: `a_rogue_key_is_refused`,
//!   `keys_and_signatures_outside_the_subgroup_and_the_identity_are_refused`; `threshold`:
//!   `a_rogue_key_the_identity_and_the_wrong_subgroup_are_refused`
//! * halt, outflow limit and expiry together: `boundaries`: `halt_outflow_limit_and_expiry_together_lose_no_claim`
//! * defect: ids that the payer chooses: `defects`: `payer_chosen_ids_cannot_freeze_a_victims_money`
//! * defect: sums that wrap: `defects`: `wrapping_sums_cannot_inflate`
//! * defect: a resent payment is a double spend: `defects`: `a_resent_payment_is_no_double_spend`
//! * defect: inputs locked by half: `defects`: `a_refused_payment_locks_none_of_its_inputs`
//! * defect: nothing is durable: `defects`: `what_is_signed_survives_a_power_cut`
//! * defect: a pool without a timer: `defects`: `a_tick_closes_a_tree_that_nobody_fills`
//! * defect: no domains: `defects`: `a_signature_serves_for_one_network_epoch_kind_and_place`
//! * defect: caches without bound: `defects`: `caches_and_budgets_are_bounded`,
//!   `trees_that_wait_for_the_disk_are_bounded`
//! * defect: a self-describing encoder: `defects`: `the_layout_is_fixed_and_has_no_names_or_slack`
//! * bad input is refused with a reason and leaves nothing: `protocol`:
//!   `what_is_wrong_is_refused_with_a_reason_and_leaves_no_state`,
//!   `certificates_need_a_quorum_of_distinct_signers_and_the_right_tree`; `schemes`:
//!   `batches_that_are_no_batches_are_refused`
//! * keys are fresh in each epoch, and an epoch waits for them: `boundaries`:
//!   `an_epoch_begins_once_a_quorum_has_registered_fresh_keys`; `node`, `lane`: `keys_rotate_with_the_lane_epoch`
//! * a restart creates no money, and settled payments stand: `ledger`, `lane_restart`:
//!   `a_deposit_after_the_snapshot_is_not_redeemed_after_a_restart`,
//!   `settled_payments_stand_after_a_restart_and_untouched_outputs_too`; `walras`, `lane_restart`
//! * nobody invents candidates: `contested`: `a_vote_for_a_payment_carries_its_owners_signature`
//! * whoever bars a payment and is shown its certificate posts it: `contested`:
//!   `the_certificate_of_a_barred_payment_is_reported`; `member`:
//!   `a_member_posts_the_certificate_of_a_payment_that_it_bars`
//! * outputs of a late verdict go home whole, without a certificate: `contested`:
//!   `outputs_that_a_late_verdict_proves_go_home_whole`
//! * a payment's inputs are contested together: `ledger`, `lane_bids`: `inputs_are_contested_together`
//! * a paid flood keeps no duty out: `replica`, `duties`:
//!   `a_paid_flood_keeps_no_duty_out_of_the_pool_and_the_block`
//! * a block costs what it changes: `bridge`: `a_block_costs_what_it_changes_and_not_what_waits`,
//!   `a_boundary_judges_each_case_once`

mod aggregate;
mod answer;
mod apart;
mod audit;
mod bls;
mod bridge;
mod broker;
mod budget;
mod certificate;
mod committee;
mod epochs;
mod evidence;
mod layout;
mod message;
mod outflow;
mod output_id;
mod payment;
mod quorum;
mod record;
mod refusal;
mod registration;
mod request;
mod resolve;
mod restart;
mod roots;
mod scheme_costs;
mod shared;
mod spent;
mod threshold;
mod validator;
mod verdicts;
mod wallet;
mod watch;

pub use aggregate::{BlsAggregate, verify_aggregates};
pub use answer::{LEAVES_MAX, LaneAnswer, signing_tree};
pub use apart::{HomeTerms, ShardOffer, fact_bytes, parse_fact, parse_report, report_bytes};
pub use audit::{LaneAuditError, LaneAuditReport, LaneLogSummary, LedgerFacts, audit};
pub use bls::{BlsPublicKey, BlsSecretKey, BlsSignature};
pub use bridge::{
    Bridge, BridgeEvent, BridgeFact, BridgeKey, BridgeOperation, BridgeRules, ContestClaim, EscrowClaim, EscrowTotals,
    POST_CHECKS_MAX, case_weight, cases_per_block, contests, with_told_board,
};
pub use broker::LaneBroker;
pub use budget::{AGGREGATE_COST, CheckBudget};
pub use certificate::PaymentCertificate;
pub use committee::{BlsRegistration, LaneCommittee};
pub use epochs::{
    HomePhase, LaneClock, LaneSchedule, REDEEM_EPOCHS, SPEND_EPOCHS, UNBONDING_EPOCHS_MIN, is_redeemable,
};
pub use evidence::{Convicted, EvidenceFinder, LaneEvidence};
pub use message::{Claim, LaneHome, RootHeader, StatementKind, halt_digest, owner_message, view_digest};
pub use outflow::{OutflowLimit, OutflowQueue};
pub use output_id::OutputId;
pub use payment::{
    ASSETS_MAX, AssetRule, INPUTS_MAX, LaneRules, OUTPUTS_MAX, Output, PAYMENT_BYTES_MAX, PAYMENT_VERSION, Payment,
    PaymentBody, PaymentSummary, PaymentView, Recipient, SpentOutput,
};
pub use quorum::{Quorums, VALIDATORS_MAX};
pub use record::{LaneLog, LogOwner, new_log};
pub use refusal::{BridgeRefusal, DkgRefusal, LaneRefusal, MuteReason};
pub use registration::{BLS_SHARDS_MAX, LaneBls, LaneRegistration, RegisteredBls, SHARDS_MAX};
pub use request::{
    AnswerScheme, CertifiedPayment, KnownSpender, OutputProof, PaidProof, SpendGround, request_bytes_max,
    settle_request, spend_request, spender_request,
};
pub use resolve::{BridgeEntry, CaseEvent, CaseFact, ConfirmedBy, ContestedOutput, Resolver, Verdict};
pub use restart::{
    CarryRefusal, ClosedLog, LaneCarryOver, PostedCertificates, RestartEvidence, RestartPart, ShownPayment, closing,
};
pub use roots::RootCache;
pub use scheme_costs::SchemeCosts;
pub use shared::{BatchAnswer, SharedCertificate, SharedPlace, SharedSignature, shared_digest};
pub use spent::SpentSet;
pub use threshold::{
    Complaint, DKG_MEMBERS_MAX, Dealing, DkgPurpose, DkgTerms, GroupKey, KeyGeneration, KeyShare, SealSeed, dealing,
    dealing_of_shard, false_dealing, is_seal_key_possessed,
};
pub use validator::{LaneAddress, LaneEffect, LaneFact, LaneInput, LanePeer, LaneSettings, LaneValidator, ViewParts};
pub use verdicts::{
    BindingCount, CaseEnd, CaseFacts, CommitteeLife, EXIT_EPOCHS, EXPIRY_EPOCHS, HOME_PORTS, KEPT_EPOCHS, LAPSE_EPOCHS,
    LOG_EPOCHS, LaneTime, OPEN_EPOCHS, REDEEM_EPOCHS_MAX, SIGN_EPOCHS_MAX, UnprovenView, ViewClaim,
};
pub use wallet::{AnswerCollector, BlsCollector, FastReceipt, Holding, SettledReceipt, SignedPayment, build_payment};
pub use watch::{LaneWatcher, WatchAction};

/// The number of a lane epoch. An output's *home* is the epoch whose committee alone signs payments that spend it.
pub type HomeEpoch = u64;
