//! The rows of native operations, by code.

use super::{AskedAs, FieldKind, FieldList, Needs, OperationField, OperationRow, SESSION_WEIGHT, Signers, field};
use crate::{
    ASSET_CONTROLS, EXACT_WEIGHT, HOLDER_STATES, LANE_DEPOSITS, PARAMETERS, POOL_WEIGHT, PROPOSAL_WEIGHT,
    REFERENCE_KINDS, REFERENCE_RULES, SEALED_WEIGHT,
};

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
    field("reference_kind", FieldKind::Choice(&REFERENCE_KINDS), "What the reference is.").typed("referenceKind");
const REFERENCE: OperationField = field(
    "reference",
    FieldKind::Bytes,
    "The reference: 1 to 35 printable ASCII characters, 16 bytes of a UUID, 32 of the SHA-256 of a message, or 8 of a \
     number, big-endian.",
);
const POSSESSION: OperationField = field("possession", FieldKind::Signature, "The key's signature that it agrees.");

const DECIMALS: OperationField = field("decimals", FieldKind::Short(1), "Decimal places for display, at most 18.");
const CONTROL: OperationField = field(
    "control",
    FieldKind::Choice(&ASSET_CONTROLS),
    "What its issuer controls in the hands of others. `open`: nothing. Since rules 17 it freezes holders (`freezable`), \
     and only those hold it that it admits (`admitted`), or it recovers units of those that have been frozen for long \
     (`recoverable`), or all of it (`admitted_recoverable`).",
);
const LEAST_UNITS: OperationField =
    field("least_units", FieldKind::Units, "The least units of it that an offer sells or asks for.")
        .typed("leastUnits");
const SUPPLY_MAX: OperationField =
    field("supply_max", FieldKind::Units, "The most units of it that may exist at one time.").typed("supplyMax");
const DOCUMENT: OperationField =
    field("document", FieldKind::Key, "The digest of a document that says what it is; zero for none.");

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

const ACCOUNT: OperationField = field("account", FieldKind::Address, "The account.").typed("changed");
const LAST: OperationField =
    field("last", FieldKind::Key, "The id of its last change of keys, waiting or done; zero for the first one.");
const KEYS: OperationField =
    field("keys", FieldKind::List(&KEY_SIGNER), "Signers with ed25519 keys, by key; 1 to 16 with those with wallets.");
const WALLETS: OperationField = field("wallets", FieldKind::List(&WALLET_SIGNER), "Signers with wallets, by address.");
const MOVE: OperationField = field("move", FieldKind::Short(2), "The weight that spends.");
const GOVERN: OperationField = field(
    "govern",
    FieldKind::Short(2),
    "The weight that changes who may spend; at least `move`, at most all weights.",
);
const GUARDIAN_KEYS: OperationField =
    field("guardian_keys", FieldKind::List(&GUARDIAN_KEY), "Guardians with ed25519 keys, by key; at most 8 in all.")
        .typed("guardianKeys");
const GUARDIAN_WALLETS: OperationField =
    field("guardian_wallets", FieldKind::List(&GUARDIAN_WALLET), "Guardians with wallets, by address.")
        .typed("guardianWallets");
const GUARDIANS: OperationField =
    field("guardians", FieldKind::Short(1), "How many guardians recover the account; 0 if it has none.");
const DELAY: OperationField =
    field("delay", FieldKind::Short(4), "Heights that a later change waits; at most 1048576.");
const SESSIONS: OperationField = field(
    "sessions",
    FieldKind::Choice(&["close", "keep"]),
    "Whether the account's session keys `close` when the change acts, or it `keep`s them.",
);
const KEY_SIGNATURES: OperationField =
    field("key_signatures", FieldKind::List(&KEY_SIGNATURE), "Signatures of ed25519 keys, by key.")
        .typed("keySignatures");
const WALLET_SIGNATURES: OperationField =
    field("wallet_signatures", FieldKind::List(&WALLET_SIGNATURE), "Signatures of wallets, by address.")
        .typed("walletSignatures");
const SIGNER_KEY: OperationField = field("key", FieldKind::Key, "The key.");
const SIGNER_WALLET: OperationField = field("wallet", FieldKind::Address, "The wallet's address.");
const WEIGHT: OperationField = field("weight", FieldKind::Short(1), "Its weight, 1 to 255.");
const SIGNATURE: OperationField = field("signature", FieldKind::Signature, "Its signature.");

static KEY_SIGNER: FieldList = FieldList {
    name: "KeySigner",
    structure: "KeySigner",
    kind: "KeySigner[]",
    about: "An ed25519 key that signs with a weight.",
    is_sorted: true,
    fields: &[SIGNER_KEY, WEIGHT],
};

static WALLET_SIGNER: FieldList = FieldList {
    name: "WalletSigner",
    structure: "WalletSigner",
    kind: "WalletSigner[]",
    about: "A wallet that signs with a weight.",
    is_sorted: true,
    fields: &[SIGNER_WALLET, WEIGHT],
};

static GUARDIAN_KEY: FieldList = FieldList {
    name: "GuardianKey",
    structure: "GuardianKey",
    kind: "GuardianKey[]",
    about: "A guardian with an ed25519 key.",
    is_sorted: true,
    fields: &[SIGNER_KEY],
};

static GUARDIAN_WALLET: FieldList = FieldList {
    name: "GuardianWallet",
    structure: "GuardianWallet",
    kind: "GuardianWallet[]",
    about: "A guardian with a wallet.",
    is_sorted: true,
    fields: &[SIGNER_WALLET],
};

static KEY_SIGNATURE: FieldList = FieldList {
    name: "KeySignature",
    structure: "KeySignature",
    kind: "KeySignature[]",
    about: "The signature of an ed25519 key.",
    is_sorted: true,
    fields: &[SIGNER_KEY, SIGNATURE],
};

static WALLET_SIGNATURE: FieldList = FieldList {
    name: "WalletSigned",
    structure: "WalletSigned",
    kind: "WalletSigned[]",
    about: "The signature of a wallet: 64 bytes, in the form of EIP-2098.",
    is_sorted: true,
    fields: &[SIGNER_WALLET, SIGNATURE],
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
    needs: Needs::Move,
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
        needs: Needs::Govern,
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
        needs: Needs::Govern,
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
        needs: Needs::Govern,
        fields: &[field("units", FieldKind::Units, "Units of the first asset.")],
        ..ROW
    },
    OperationRow {
        code: &[8],
        name: "accuse",
        structure: "Accuse",
        about: "Proves that a validator contradicted itself. To ask for it, give it as `encoded`.",
        signer: Signers::Duty,
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
        signer: Signers::Duty,
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
        needs: Needs::Govern,
        fields: &[
            field("slot", FieldKind::Short(4), "The slot: one above the last one that the account has given."),
            field("key", FieldKind::Key, "The key."),
            field(
                "scope",
                FieldKind::Choice(&["cancel", "trade", "duty", "control"]),
                "`cancel`, `trade`, `duty` since rules 14, or `control` since rules 17: it freezes as many holders of \
                 an asset as its cap of it has units.",
            ),
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
        needs: Needs::Govern,
        fields: &[field("to", FieldKind::Address, "Receiving account."), ASSET, AMOUNT, REFERENCE_KIND, REFERENCE],
        ..ROW
    },
    OperationRow {
        code: &[21],
        name: "set_keys",
        structure: "SetKeys",
        about: "Gives an account a policy of several keys, or another one. Any account sends it; those sign who govern the \
                account, and those who will. Since rules 14.",
        fields: &[
            ACCOUNT,
            LAST,
            KEYS,
            WALLETS,
            MOVE,
            GOVERN,
            GUARDIAN_KEYS,
            GUARDIAN_WALLETS,
            GUARDIANS,
            DELAY,
            SESSIONS,
            field("first", FieldKind::Key, "The ed25519 key whose hash is the account's address."),
            KEY_SIGNATURES,
            WALLET_SIGNATURES,
        ],
        ..ROW
    },
    OperationRow {
        code: &[22],
        name: "recover_keys",
        structure: "RecoverKeys",
        about: "Gives an account whose keys are lost another policy. Any account sends it; its guardians sign, and those \
                who will govern it. Since rules 14.",
        fields: &[
            ACCOUNT,
            LAST,
            KEYS,
            WALLETS,
            MOVE,
            GOVERN,
            GUARDIAN_KEYS,
            GUARDIAN_WALLETS,
            GUARDIANS,
            DELAY,
            SESSIONS,
            KEY_SIGNATURES,
            WALLET_SIGNATURES,
        ],
        ..ROW
    },
    OperationRow {
        code: &[23],
        name: "complete_keys",
        structure: "CompleteKeys",
        about: "Makes a change of keys act whose wait is over. Any account sends it. Since rules 14.",
        fields: &[ACCOUNT],
        ..ROW
    },
    OperationRow {
        code: &[24],
        name: "set_receiving",
        structure: "SetReceiving",
        about: "Says whether payments and issues to the account need a reference, from the next block on. Since \
                rules 14.",
        needs: Needs::Govern,
        fields: &[field(
            "references",
            FieldKind::Choice(&REFERENCE_RULES),
            "`optional`, or `required`: then `pay` and `issue` to it are refused, and `pay_referenced` counts.",
        )],
        ..ROW
    },
    OperationRow {
        code: &[25],
        name: "list_asset",
        structure: "ListAsset",
        about: "Lists an asset, which its sender issues. Its name is the symbol, a point and its number. Since rules \
                15.",
        needs: Needs::Govern,
        fields: &[
            field(
                "symbol",
                FieldKind::Text,
                "What its name begins with: 1 to 6 letters, digits, `-` or `_`, a letter first.",
            ),
            DECIMALS,
            CONTROL,
            LEAST_UNITS,
            SUPPLY_MAX,
            DOCUMENT,
            field(
                "fees",
                FieldKind::Long,
                "The fees that it pays for being listed: exactly `listing.fees` of `/v1/limits`, or nothing happens.",
            ),
        ],
        ..ROW
    },
    OperationRow {
        code: &[26],
        name: "close_asset",
        structure: "CloseAsset",
        about: "Announces that an asset closes, or takes that back; only its issuer can. Since rules 15.",
        needs: Needs::Govern,
        fields: &[
            ASSET,
            field(
                "closing",
                FieldKind::Choice(&["announce", "revoke"]),
                "`announce` that it closes when the notice is over, or `revoke` that before.",
            ),
        ],
        ..ROW
    },
    OperationRow {
        code: &[27, 0],
        name: "propose_parameter",
        structure: "ProposeParameter",
        about: "Proposes another value of a parameter of the chain, on which validators vote. Since rules 16.",
        fees: PROPOSAL_WEIGHT,
        needs: Needs::Govern,
        fields: &[
            field("parameter", FieldKind::Choice(&PARAMETERS), "Which one; `/v1/parameters` lists them."),
            field("value", FieldKind::Long, "Its value: at most twice as much as will be in force, at least half."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[27, 1],
        name: "propose_listing",
        structure: "ProposeListing",
        about: "Proposes an asset with a plain name, on which validators vote. Since rules 16.",
        fees: PROPOSAL_WEIGHT,
        needs: Needs::Govern,
        fields: &[
            field("issuer", FieldKind::Address, "The account that issues it."),
            field("symbol", FieldKind::Text, "Its name: 1 to 12 letters, digits, `-` or `_`, a letter first."),
            DECIMALS,
            CONTROL,
            LEAST_UNITS,
            SUPPLY_MAX,
            DOCUMENT,
        ],
        ..ROW
    },
    OperationRow {
        code: &[27, 2],
        name: "propose_closing",
        structure: "ProposeClosing",
        about: "Proposes that an asset closes, whatever its issuer says; validators vote on it. Since rules 16.",
        fees: PROPOSAL_WEIGHT,
        needs: Needs::Govern,
        fields: &[ASSET],
        ..ROW
    },
    OperationRow {
        code: &[27, 3],
        name: "propose_lane_terms",
        structure: "ProposeLaneTerms",
        about: "Proposes the terms of an asset in the payment lane, on which validators vote. Since rules 19.",
        fees: PROPOSAL_WEIGHT,
        needs: Needs::Govern,
        fields: &[
            ASSET,
            field("least_units", FieldKind::Units, "The smallest output and the smallest deposit.").typed("leastUnits"),
            field("fee", FieldKind::Units, "What each payment leaves in escrow; zero stays zero."),
            field(
                "deposits",
                FieldKind::Choice(&LANE_DEPOSITS),
                "`taken`, or `refused`: then nothing enters, and what is in the lane is paid and leaves as ever.",
            ),
            field("outflow_most", FieldKind::Units, "The most that leaves at once beyond what enters; 0 for no limit.")
                .typed("outflowMost"),
            field(
                "outflow_per_height",
                FieldKind::Units,
                "What of that limit is regained at each height; 0 for no limit.",
            )
            .typed("outflowPerHeight"),
        ],
        ..ROW
    },
    OperationRow {
        code: &[28],
        name: "vote",
        structure: "Vote",
        about: "Says whether the account wants what was proposed; of several words the last one counts. Since rules 16.",
        needs: Needs::Govern,
        fields: &[
            field("proposal", FieldKind::Key, "The id of the transaction that proposed it."),
            field("word", FieldKind::Choice(&["no", "yes"]), "`yes` or `no`."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[29],
        name: "set_holder",
        structure: "SetHolder",
        about: "Freezes or opens a holder of an asset; only its issuer can. Since rules 17.",
        signer: Signers::Controlling,
        fields: &[
            ASSET,
            field("account", FieldKind::Address, "The holder.").typed("holder"),
            field(
                "state",
                FieldKind::Choice(&HOLDER_STATES),
                "`frozen`: from the next block on it neither spends, buys nor receives the asset, and its offers end \
                 with this one; or `open`.",
            ),
            REFERENCE_KIND,
            REFERENCE,
        ],
        ..ROW
    },
    OperationRow {
        code: &[30],
        name: "recover",
        structure: "Recover",
        about: "Moves units of a holder who has been frozen for 86400 heights; only the issuer of a recoverable asset \
                can. Since rules 17.",
        needs: Needs::Govern,
        fields: &[
            ASSET,
            field("from", FieldKind::Address, "The frozen holder."),
            field("to", FieldKind::Address, "The account that receives them: the issuer, or an open holder."),
            AMOUNT,
            REFERENCE_KIND,
            REFERENCE,
        ],
        ..ROW
    },
    OperationRow {
        code: &[31],
        name: "seal_duty",
        structure: "SealDuty",
        about: "Posts a validator's part in making the committee's sealing key. Its node posts it by itself; it is only \
                shown in this form. Since rules 20.",
        fees: 0,
        signer: Signers::Validator,
        asked: AskedAs::Never,
        fields: &[
            field("key", FieldKind::Long, "The number of the key."),
            field("post", FieldKind::Bytes, "The bytes posted, in hexadecimal; at most 4,096."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[32],
        name: "sealed",
        structure: "Sealed",
        about: "Brings an envelope: signed orders that nobody reads before their block is decided. An ed25519 key signs \
                it. Since rules 21.",
        fees: SEALED_WEIGHT,
        signer: Signers::Trading,
        fields: &[
            field("key", FieldKind::Long, "The number of the committee's key that opens it."),
            field("size", FieldKind::Short(1), "The size of its box: 0 for 512 bytes, 1 for 2048, 2 for 8192."),
            field("point", FieldKind::Bytes, "A point of G2, compressed: 96 bytes."),
            field("sealed", FieldKind::Bytes, "Its box."),
        ],
        ..ROW
    },
];
