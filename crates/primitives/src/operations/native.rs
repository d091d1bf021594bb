//! The rows of native operations, by code.

use super::{AskedAs, FieldKind, FieldList, OperationField, OperationRow, SESSION_WEIGHT, Signers, field};
use crate::{EXACT_WEIGHT, POOL_WEIGHT};

const SELL: OperationField = field("sell", FieldKind::Asset, "Symbol sold.");
const BUY: OperationField = field("buy", FieldKind::Asset, "Symbol bought.");
const ASSET: OperationField = field("asset", FieldKind::Asset, "Symbol.");
const AMOUNT: OperationField = field("amount", FieldKind::Units, "Units.");
const LIFE: OperationField = field(
    "life",
    FieldKind::Life,
    "How long it rests: `rests` until it is sold or cancelled, `until` and the last height whose batch it is in, or \
     `one batch`.",
);
const CLIENT: OperationField =
    field("client", FieldKind::Client, "What its client calls it: 16 bytes in hexadecimal. No state has it.");
const A: OperationField = field("a", FieldKind::Asset, "Symbol of the asset with the lower number.");
const B: OperationField = field("b", FieldKind::Asset, "Symbol of the other asset.");
const CLASS: OperationField = field("class", FieldKind::Short(1), "Fee class.");
const SLOT: OperationField = field("slot", FieldKind::Short(4), "The slot.");
const AT: OperationField = field(
    "at",
    FieldKind::Long,
    "A past height, above that of the account's last approval or withdrawal: an older one counts no more.",
);
const REFERENCE_KIND: OperationField =
    field("reference_kind", FieldKind::Choice(&["text", "uuid", "message", "number"]), "What the reference is.")
        .typed("referenceKind");
const REFERENCE: OperationField = field(
    "reference",
    FieldKind::Bytes,
    "The reference: 1 to 35 printable ASCII characters, 16 bytes of a UUID, 32 of the SHA-256 of a message, or 8 of a \
     number, big-endian.",
);
const POSSESSION: OperationField = field("possession", FieldKind::Signature, "The key's signature that it agrees.");

static OFFER: FieldList = FieldList {
    name: "OfferPlace",
    structure: "Offer",
    kind: "Offer[]",
    about: "Where an offer of the sender rests.",
    is_sorted: false,
    fields: &[SELL, BUY, field("limit", FieldKind::Price, "Its limit."), field("offer", FieldKind::Long, "Its id.")],
};

static SESSION_CAP: FieldList = FieldList {
    name: "SessionLimit",
    structure: "SessionCap",
    kind: "SessionCap[]",
    about: "The most units of an asset that a session key may use.",
    is_sorted: true,
    fields: &[ASSET, field("units", FieldKind::Units, "Units.")],
};

/// The statements of a contradiction, as [`crate::Contradiction::name`] names them.
const STATEMENTS: &[&str] = &["proposals", "commits", "round_votes", "round_proposals"];

const ROW: OperationRow = OperationRow {
    code: &[],
    name: "",
    action: None,
    structure: "",
    about: "",
    fees: 1,
    signer: Signers::Owner,
    asked: AskedAs::Fields,
    fields: &[],
};

/// Native operations, those at venues aside, by code.
pub static NATIVE: &[OperationRow] = &[
    OperationRow {
        code: &[0],
        name: "create_account",
        structure: "CreateAccount",
        about: "Registers an account, or rotates the account's own key.",
        fields: &[
            field("account", FieldKind::Address, "The account.").typed("registered"),
            field("key", FieldKind::Key, "The key that controls it from the next block on."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[1],
        name: "create_offer",
        structure: "CreateOffer",
        about: "Offers an asset for another.",
        signer: Signers::Trading,
        fields: &[
            SELL,
            BUY,
            field("amount", FieldKind::Units, "Maximum units to sell."),
            field("limit", FieldKind::Price, "Minimum units bought per unit sold."),
            LIFE,
            CLIENT,
        ],
        ..ROW
    },
    OperationRow {
        code: &[2],
        name: "cancel",
        structure: "Cancel",
        about: "Cancels offers.",
        signer: Signers::Cancelling,
        fields: &[field(
            "offers",
            FieldKind::List(&OFFER),
            "Where they rest, 1 to 32 different places. What does not rest is skipped; one must.",
        )],
        ..ROW
    },
    OperationRow {
        code: &[3],
        name: "pay",
        structure: "Pay",
        about: "Moves units to another account.",
        fields: &[field("to", FieldKind::Address, "Receiving account."), ASSET, AMOUNT],
        ..ROW
    },
    OperationRow {
        code: &[4],
        name: "issue",
        structure: "Issue",
        about: "Creates units, for their issuer.",
        fields: &[field("to", FieldKind::Address, "Receiving account."), ASSET, AMOUNT],
        ..ROW
    },
    OperationRow {
        code: &[5],
        name: "burn",
        structure: "Burn",
        about: "Destroys units, for their issuer.",
        fields: &[ASSET, AMOUNT],
        ..ROW
    },
    OperationRow {
        code: &[6],
        name: "stake",
        structure: "Stake",
        about: "Registers a validator, adds to its stake, or changes its key or address.",
        fields: &[
            field("units", FieldKind::Units, "Units of the first asset to add."),
            field("key", FieldKind::Key, "The validator's key."),
            field("address", FieldKind::Text, "Host and port.").typed("host"),
            field("possession", FieldKind::Signature, "The validator key's proof of possession."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[7],
        name: "unstake",
        structure: "Unstake",
        about: "Withdraws units from the account's own stake.",
        fields: &[field("units", FieldKind::Units, "Units of the first asset.")],
        ..ROW
    },
    OperationRow {
        code: &[8],
        name: "accuse",
        structure: "Accuse",
        about: "Proves that a validator contradicted itself. To ask for it, give it as `encoded`.",
        asked: AskedAs::Bytes {
            what: "an accusation",
            layout: "epoch: `u64` · member: `u8` · height: `u64` · contradiction",
        },
        fields: &[
            field("epoch", FieldKind::Long, "The epoch of its committee.").typed(""),
            field("validator", FieldKind::Short(1), "Its index in the committee.").typed(""),
            field("height", FieldKind::Long, "The height of its two statements.").typed(""),
            field("statements", FieldKind::Choice(STATEMENTS), "What it contradicted itself in.").typed(""),
            field("", FieldKind::Whole, "The evidence in its wire encoding.").typed("evidence"),
        ],
        ..ROW
    },
    OperationRow {
        code: &[9],
        name: "withdraw",
        structure: "Withdraw",
        about: "Moves units into the payment lane.",
        fields: &[field("to", FieldKind::Key, "The key that may spend them there."), ASSET, AMOUNT],
        ..ROW
    },
    OperationRow {
        code: &[10],
        name: "lane",
        structure: "Lane",
        about: "Posts something about the payment lane.",
        fields: &[field("post", FieldKind::Bytes, "The bytes posted, in hexadecimal; at most 131,072.")],
        ..ROW
    },
    OperationRow {
        code: &[12],
        name: "replace",
        structure: "Replace",
        about: "Cancels an offer and places another one of the same pair.",
        signer: Signers::Trading,
        fields: &[
            SELL,
            BUY,
            field("old_limit", FieldKind::Price, "Limit of the old offer.").typed("oldLimit"),
            field("offer", FieldKind::Long, "Id of the old offer."),
            field(
                "remains",
                FieldKind::Units,
                "Units that the sender believes rest of it; no more do. The new offer is smaller by what was sold \
                 meanwhile.",
            ),
            field("amount", FieldKind::Units, "Units that the new offer sells if `remains` rest."),
            field("limit", FieldKind::Price, "Limit of the new offer."),
            LIFE,
            CLIENT,
        ],
        ..ROW
    },
    OperationRow {
        code: &[13, 0],
        name: "open_pool",
        structure: "OpenPool",
        about: "Opens a constant-product pool. A 256th of both amounts can never be taken out again.",
        fees: POOL_WEIGHT,
        fields: &[
            A,
            B,
            CLASS,
            field("x", FieldKind::Units, "Units of `a`."),
            field("y", FieldKind::Units, "Units of `b`."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[13, 1],
        name: "provide",
        structure: "Provide",
        about: "Buys shares of a pool.",
        fields: &[
            A,
            B,
            CLASS,
            field("shares", FieldKind::Units, "Shares to buy."),
            field("most_a", FieldKind::Units, "The most units of `a` to pay; what is not needed returns.")
                .typed("mostA"),
            field("most_b", FieldKind::Units, "The most units of `b`.").typed("mostB"),
        ],
        ..ROW
    },
    OperationRow {
        code: &[13, 2],
        name: "leave",
        structure: "Leave",
        about: "Gives shares of a pool back.",
        fields: &[
            A,
            B,
            CLASS,
            field("shares", FieldKind::Units, "Shares to give back."),
            field("least_a", FieldKind::Units, "The fewest units of `a` to receive.").typed("leastA"),
            field("least_b", FieldKind::Units, "The fewest units of `b`.").typed("leastB"),
        ],
        ..ROW
    },
    OperationRow {
        code: &[14],
        name: "exact",
        structure: "Exact",
        about: "In the batch of its block, buys or sells exactly so many units within its bound; otherwise nothing \
                happens.",
        fees: EXACT_WEIGHT,
        signer: Signers::Trading,
        fields: &[
            SELL,
            BUY,
            field(
                "side",
                FieldKind::Choice(&["buy", "sell"]),
                "`buy`: exactly `units` of `buy` are bought; `sell`: exactly `units` of `sell` are sold.",
            ),
            field("units", FieldKind::Units, "Units to buy or to sell."),
            field(
                "bound",
                FieldKind::Units,
                "The most units of `sell` to pay, which it locks for the block, or the fewest of `buy` to receive.",
            ),
            CLIENT,
        ],
        ..ROW
    },
    OperationRow {
        code: &[15, 0],
        name: "authorize_session",
        structure: "AuthorizeSession",
        about: "Lets a key cancel or trade for the account.",
        fees: SESSION_WEIGHT,
        fields: &[
            field("slot", FieldKind::Short(4), "The slot: one above the last one that the account has given."),
            field("key", FieldKind::Key, "The key."),
            field("scope", FieldKind::Choice(&["cancel", "trade"]), "`cancel` or `trade`."),
            field("ends", FieldKind::Long, "The last height at which its transactions count."),
            field("alive", FieldKind::Long, "Its offers end with this block, unless the height is raised before."),
            field(
                "caps",
                FieldKind::List(&SESSION_CAP),
                "Units that it may use of each asset, fees included; at most 8. Of others it may use nothing.",
            ),
            POSSESSION,
        ],
        ..ROW
    },
    OperationRow {
        code: &[15, 1],
        name: "revoke_session",
        structure: "RevokeSession",
        about: "Ends a session key and its offers.",
        fields: &[SLOT],
        ..ROW
    },
    OperationRow {
        code: &[15, 2],
        name: "session_alive",
        structure: "SessionAlive",
        about: "Raises the height at whose end a session key's offers end; 0 ends them now.",
        signer: Signers::Cancelling,
        fields: &[SLOT, field("through", FieldKind::Long, "The height, or 0.")],
        ..ROW
    },
    OperationRow {
        code: &[16],
        name: "present",
        structure: "Present",
        about: "Says that the account's validator is present. Its node posts it by itself; it is only shown in this form.",
        fees: 0,
        signer: Signers::Validator,
        asked: AskedAs::Never,
        fields: &[field("epoch", FieldKind::Long, "The epoch that it may be drawn for.")],
        ..ROW
    },
    OperationRow {
        code: &[17],
        name: "approve",
        structure: "Approve",
        about: "Says that the validator's node can decide under these rules, and that its operator wants them. A \
                validating node posts it by itself, for nothing.",
        signer: Signers::Validator,
        fields: &[
            field("rules", FieldKind::Short(4), "The number of the rules: those in force, or the next ones."),
            field("manifest", FieldKind::Key, "The digest of what the program means by them."),
            field("notice", FieldKind::Long, "The fewest heights from the agreement until they act."),
            AT,
        ],
        ..ROW
    },
    OperationRow {
        code: &[18],
        name: "unapprove",
        structure: "Unapprove",
        about: "Withdraws an approval of rules.",
        signer: Signers::Validator,
        fields: &[field("rules", FieldKind::Short(4), "The number of the rules."), AT],
        ..ROW
    },
    OperationRow {
        code: &[19],
        name: "pay_referenced",
        structure: "PayReferenced",
        about: "Moves units to another account, and says what for. Since rules 12.",
        fields: &[field("to", FieldKind::Address, "Receiving account."), ASSET, AMOUNT, REFERENCE_KIND, REFERENCE],
        ..ROW
    },
    OperationRow {
        code: &[20],
        name: "issue_referenced",
        structure: "IssueReferenced",
        about: "Creates units of an asset; only its issuer can. It says what for. Since rules 12.",
        fields: &[field("to", FieldKind::Address, "Receiving account."), ASSET, AMOUNT, REFERENCE_KIND, REFERENCE],
        ..ROW
    },
];
