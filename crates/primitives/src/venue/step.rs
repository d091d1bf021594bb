//! One signature for all reports of a step.
//!
//! A venue that signs each report spends most of a fill on it. So the reports of a step are leaves of one tree
//! ([`crate::merkle`]), and the report key signs its root once. It is what members of the payment lane do (Accept,
//! section 3.2). Each report carries the siblings on its path.
//!
//! # The protocol
//!
//! - Upon *a step with fills*: the step's record in the journal has a number. Fill i of the step, from 0, has the leaf
//!   of its buyer at place 2i and that of its seller at 2i + 1. A leaf is index, leaf of the fill, and the account to
//!   which it is reported. Once the record is durable, the key signs network, venue, incarnation, the record's number,
//!   the host's clock, the number of leaves, and the root ([`StepHeader`]). A step without fills signs nothing.
//! - Upon *being told*: compute the root from leaf and path, put it into the header, and verify. So nobody states a
//!   root. Whoever has this has what a report with a signature of its own would say, under the same key.
//! - Upon *two reports of one incarnation*: if they have one index and two leaves, or one step and two headers, they
//!   convict together ([`VenueReport::contradicts`]). It takes no third thing, so each of the two who hold them can.
//! - Upon *a report and the ledger's tree of fills*: as for reports with signatures of their own.
//! - *When*: from the first certified height on of which the next block counts accusations of this form
//!   ([`STEP_REPORTS_RULES`]). Before it, and for steps of more leaves than a tree has, each report is signed itself.
//!   Both forms are valid side by side, and contradict each other.
//!
//! # Properties
//!
//! 1. *It says the same.* A report of a step states index, leaf and account under network, venue and incarnation, as a
//!    single one does. It convicts and claims wherever a single one does.
//! 2. *An index has one leaf*, whatever trees, places or forms it is reported in: else both reports convict.
//! 3. *A step has one header*: clock, number of leaves and root. A second one convicts, with any leaf of each.
//! 4. *Bounded*: a path has at most 20 siblings. Its length and sides follow from the number of leaves, which is
//!    signed, and the place. Other lengths are no report.
//! 5. *Separate*: leaves and nodes are hashed under keys of their own, and under others than those of the lane's trees.
//!    A header begins with a tag of its own.
//! 6. *Deterministic*: the header follows from the journal. The same step after a crash, or of a replay, has the same
//!    bytes; under a new report key, the same header.
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | two traders of one step are shown two trees | two headers of one step: either report convicts with the other |
//! | one tree has one index twice, with two leaves | both are reports of one index: they convict |
//! | a single report says otherwise than that of a step | the same |
//! | a path is shown at another place, or is cut or prolonged | its sides and length follow from size and place |
//! | a root of another network, venue, incarnation, step or clock, or of a tree of another size | another message |
//! | an inner node is shown as a leaf, or a leaf of the lane | keys of their own for each |
//! | a path of thousands of siblings makes the ledger hash | it is refused before any hash |
//! | a report of a step goes into an old accusation | its bytes are no single report |
//! | accusations of this form before the rules have them | no ledger counts them, no validator votes for them |
//! | an honest venue is convicted after a crash | what was not durable was not told; what was is signed as before |
//! | an honest venue is convicted after a change of the operator | the header does not name the key |
//! | one pair of reports is a thousand accusations | a pair has one order; a venue is convicted once |
//!
//! # Deviations from Accept
//!
//! - The header states a step and a clock where the lane's states a log position: a step's number is a record's.
//! - Verified roots are not kept: a trader has few reports of one step.
//! - A signature does not state which of the incarnation's report keys it is by: the report does, and the key verifies.
