//! Why what an issuer says of holders is refused, and what frozen holders cannot do.

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::CONTROLS =>
    /// The sender is frozen in an asset that it would spend or buy.
    FROZEN: refused, "frozen",
        "the issuer has frozen the account in an asset that it would spend, sell, buy or provide: cancels and \
         collections still work; ask the issuer";
    /// The receiver is frozen.
    RECEIVER_FROZEN: refused, "receiver_frozen",
        "the issuer has frozen the receiving account in this asset";
    /// The sender is not admitted.
    NOT_ADMITTED: refused, "not_admitted",
        "the asset is for holders whom its issuer has admitted, and the account is none of them: ask the issuer";
    /// The receiver is not admitted.
    RECEIVER_NOT_ADMITTED: refused, "receiver_not_admitted",
        "the asset is for holders whom its issuer has admitted, and the receiving account is none of them";
    /// The issuer freezes no holders of the asset.
    NOT_FREEZABLE: invalid, "not_freezable",
        "the issuer does not control this asset in the hands of others: `control` of the asset says what it does";
    /// The issuer recovers nothing of the asset.
    NOT_RECOVERABLE: invalid, "not_recoverable",
        "the issuer cannot recover units of this asset: `control` of the asset says what it does";
    /// The account is the issuer's, or one that nobody has.
    HOLDER_EXEMPT: invalid, "holder_exempt",
        "the account cannot be frozen: it is that of the issuer, or a reserved address";
    /// The holder is not frozen for long enough.
    NOT_FROZEN_LONG: refused, "not_frozen_long",
        "units are recovered, and deposits recalled, of holders who have been frozen for 86400 heights: freeze this \
         one, or wait";
    /// The holder has fewer units.
    RECOVERS_TOO_MUCH: refused, "recovers_too_much",
        "the frozen holder has fewer units in its balance: name at most those; recall deposits at venues before";
    /// The account has as many open offers of a controlled asset as it may.
    CONTROLLED_OFFERS_FULL: refused, "controlled_offers_full",
        "the account has 4096 open offers of an asset whose holders its issuer freezes: cancel some";
}
