//! The rows of what is done at a venue of continuous markets, by code.

use super::{AskedAs, FieldKind, FieldList, Needs, OperationField, OperationRow, Signers, VENUE, field};

const NUMBER: OperationField = field("venue", FieldKind::Short(4), "The venue.");
const ASSET: OperationField = field("asset", FieldKind::Asset, "Symbol.");
const UNITS: OperationField = field("units", FieldKind::Units, "Units.");
const BOND_UNITS: OperationField = field("units", FieldKind::Units, "Units of the first asset.");
const KEY: OperationField = field("key", FieldKind::Key, "The key.");
const FEE_CAP: &str = "The most that an order pays in fees, in millionths of the quote units that it trades.";
const FEE_CAP_PPM: OperationField = field("fee_cap_ppm", FieldKind::Short(4), FEE_CAP).typed("feeCapPpm");
const ACCOUNT: OperationField = field("account", FieldKind::Address, "The account.");
const HOLDER: OperationField =
    field("account", FieldKind::Address, "The frozen holder, to whom the units return.").typed("holder");
const REPORT_KEY: OperationField = field("report_key", FieldKind::Key, "The report key.");
const REPORTED: &[OperationField] = &[
    NUMBER,
    field("incarnation", FieldKind::Short(4), "The incarnation of the report."),
    field("index", FieldKind::Long, "The index of the reported fill."),
    field("account", FieldKind::Address, "The account to which the report was made.").typed("reported"),
    DIGEST,
];
const DIGEST: OperationField =
    field("", FieldKind::Digest, "The Keccak hash of the operation's bytes.").typed("digest");

static MARKET: FieldList = FieldList {
    name: "MarketLimits",
    structure: "VenueMarket",
    kind: "VenueMarket[]",
    about: "A market that a key may trade in, and at which prices.",
    is_sorted: false,
    fields: &[
        field("market", FieldKind::Short(4), "The market."),
        field("tick_min", FieldKind::Short(4), "The lowest price in ticks.").typed("lowest"),
        field("tick_max", FieldKind::Short(4), "The highest price in ticks.").typed("highest"),
    ],
};

static CAP: FieldList = FieldList {
    name: "MandateLimit",
    structure: "VenueCap",
    kind: "VenueCap[]",
    about: "The most that a key may lose of an asset.",
    is_sorted: true,
    fields: &[ASSET, UNITS],
};

const MANDATE: &[OperationField] = &[
    field(
        "scope",
        FieldKind::Choice(&["venue", "batch", "cancel"]),
        "`venue`: it trades at the venue. Others are not accepted yet.",
    ),
    field("markets", FieldKind::List(&MARKET), "The markets, by number; 1 to 16."),
    field(
        "caps",
        FieldKind::List(&CAP),
        "The most that it may lose on balance, by asset, at most 32; of an asset that is missing nothing.",
    ),
];

const TERMS: &[OperationField] = &[
    field("base", FieldKind::Asset, "Symbol of the asset that is traded."),
    field("quote", FieldKind::Asset, "Symbol of the asset in which it is paid."),
    field("lot_units", FieldKind::Units, "Base units of a lot.").typed("lotUnits"),
    field("tick_units", FieldKind::Units, "Quote units of a lot for one tick.").typed("tickUnits"),
    field("lots_max", FieldKind::Short(4), "The most lots of an order.").typed("lotsMax"),
    FEE_CAP_PPM,
    field("penalty", FieldKind::Units, "What a bust costs the bond, in units of the first asset for each lot."),
];

const FLOOR: &[OperationField] = &[
    field("incarnation", FieldKind::Short(4), "The incarnation of the venue that the order is for."),
    field("day", FieldKind::Short(2), "The day of the session."),
    field("reference", FieldKind::Short(4), "The client's reference."),
];

const ROW: OperationRow = OperationRow {
    code: &[],
    name: "venue",
    action: None,
    structure: "",
    about: "",
    fees: 1,
    signer: Signers::Owner,
    needs: Needs::Move,
    asked: AskedAs::Fields,
    fields: &[],
};

/// What is done at a venue, by code.
pub static VENUES: &[OperationRow] = &[
    OperationRow {
        code: &[VENUE, 0],
        action: Some("open"),
        structure: "VenueOpen",
        about: "Opens a venue, which the sender owns.",
        needs: Needs::Govern,
        fields: &[
            field("venue", FieldKind::Short(4), "Its number: the next free one."),
            field(
                "operator",
                FieldKind::Group(&[ACCOUNT.typed("operator"), REPORT_KEY.typed("reportKey")]),
                "Who settles and reports.",
            ),
            FEE_CAP_PPM,
            field("bond", FieldKind::Units, "Units of the first asset that become its bond."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 1],
        action: Some("list"),
        structure: "VenueList",
        about: "Lists a market.",
        needs: Needs::Govern,
        fields: &[
            NUMBER,
            field("market", FieldKind::Short(4), "The market's number: the next free one of the venue."),
            field("terms", FieldKind::Group(TERMS), "Its terms, for ever."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 2],
        action: Some("fence"),
        structure: "VenueFence",
        about: "Ends an incarnation.",
        fields: &[NUMBER, field("incarnation", FieldKind::Short(4), "The incarnation.")],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 3],
        action: Some("change_operator"),
        structure: "VenueChangeOperator",
        about: "Replaces the operator.",
        needs: Needs::Govern,
        fields: &[
            NUMBER,
            field(
                "from",
                FieldKind::Group(&[ACCOUNT.typed("from"), REPORT_KEY.typed("fromReportKey")]),
                "The present one.",
            ),
            field("to", FieldKind::Group(&[ACCOUNT.typed("to"), REPORT_KEY.typed("toReportKey")]), "The next one."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 4],
        action: Some("bond"),
        structure: "VenueBond",
        about: "Adds to the bond.",
        fields: &[NUMBER, BOND_UNITS],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 5],
        action: Some("unbond"),
        structure: "VenueUnbond",
        about: "Withdraws from the bond.",
        fields: &[NUMBER, BOND_UNITS],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 6],
        action: Some("settle"),
        structure: "VenueSettle",
        about: "Settles fills. To ask for it, give it as `encoded`.",
        asked: AskedAs::Bytes { what: "a settle", layout: "settle" },
        fields: &[
            NUMBER,
            field("incarnation", FieldKind::Short(4), "Its incarnation."),
            field("from", FieldKind::Long, "The index of the first fill."),
            field("fills", FieldKind::Short(4), "Number of fills."),
            DIGEST,
        ],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 7],
        action: Some("deposit"),
        structure: "VenueDeposit",
        about: "Deposits units of the sender.",
        fields: &[NUMBER, ASSET, UNITS],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 8],
        action: Some("collect"),
        structure: "VenueCollect",
        about: "Asks for units of the sender's deposit, or for all if it has fewer.",
        fields: &[NUMBER, ASSET, UNITS],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 9],
        action: Some("authorize"),
        structure: "VenueAuthorize",
        about: "Lets a key trade for the sender.",
        needs: Needs::Govern,
        fields: &[
            NUMBER,
            KEY,
            field("mandate", FieldKind::Group(MANDATE), "What it may do. It never changes."),
            field("possession", FieldKind::Signature, "The key's signature that it agrees."),
        ],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 10],
        action: Some("revoke"),
        structure: "VenueRevoke",
        about: "Ends a key of the sender for ever.",
        fields: &[NUMBER, KEY],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 11],
        action: Some("raise_floor"),
        structure: "VenueRaiseFloor",
        about: "Lower numbers of a key of the sender are dead.",
        fields: &[NUMBER, KEY, field("floor", FieldKind::Group(FLOOR), "The lowest number that lives.")],
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 12],
        action: Some("accuse"),
        structure: "VenueAccuse",
        about: "Proves that a venue reported something else than it settled. To ask for it, give it as `encoded`.",
        signer: Signers::Duty,
        asked: AskedAs::Bytes {
            what: "an accusation",
            layout: "report · 0, leaf, number of siblings `u32`, siblings, or 1, report · option of an end",
        },
        fields: REPORTED,
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 13],
        action: Some("claim"),
        structure: "VenueClaim",
        about: "Claims a reported fill that an ended incarnation never settled. To ask for it, give it as `encoded`.",
        asked: AskedAs::Bytes {
            what: "a claim",
            layout: "report · end · order that buys · order that sells · fill, with positions 0 and 1",
        },
        fields: REPORTED,
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 14],
        action: Some("accuse_step"),
        structure: "VenueAccuseStep",
        about: "Proves by a report of a step that a venue reported something else than it settled, or signed a step \
                twice. To ask for it, give it as `encoded`.",
        signer: Signers::Duty,
        asked: AskedAs::Bytes {
            what: "an accusation by a report of a step",
            layout: "report of either form · 0, leaf, number of siblings `u32`, siblings, or 1, report of either form \
                     · option of an end",
        },
        fields: REPORTED,
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 15],
        action: Some("claim_step"),
        structure: "VenueClaimStep",
        about: "Claims by a report of a step a fill that an ended incarnation never settled. To ask for it, give it as \
                `encoded`.",
        asked: AskedAs::Bytes {
            what: "a claim by a report of a step",
            layout: "report of a step · end · order that buys · order that sells · fill, with positions 0 and 1",
        },
        fields: REPORTED,
        ..ROW
    },
    OperationRow {
        code: &[VENUE, 16],
        action: Some("recall"),
        structure: "VenueRecall",
        about: "Asks for all that a frozen holder has at a venue, for the issuer of a recoverable asset. Since rules 17.",
        needs: Needs::Govern,
        fields: &[NUMBER, ASSET, HOLDER],
        ..ROW
    },
];
