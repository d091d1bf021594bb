//! What an issuer controls of its asset in the hands of others. The rules are the ledger's (its place `controls`).

use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Address, Amount, AssetId, Reference};

/// The first rules that have assets whose issuers control them.
pub const RULES_OF_CONTROLS: u32 = 17;

/// The names of [`AssetControl`]s in interfaces, in their order.
pub const ASSET_CONTROLS: [&str; 5] = ["open", "freezable", "admitted", "recoverable", "admitted_recoverable"];

/// The names of [`HolderState`]s in interfaces, in their order.
pub const HOLDER_STATES: [&str; 2] = ["frozen", "open"];

/// What the issuer of an asset controls of it in the hands of others. All but the first are since
/// [`RULES_OF_CONTROLS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum AssetControl {
    /// Nothing.
    #[default]
    Open,
    /// It freezes holders.
    Freezable,
    /// It freezes holders, and only those that it has admitted hold the asset.
    Admitted,
    /// It freezes holders, and recovers units of those that have been frozen for long.
    Recoverable,
    /// All of it.
    AdmittedRecoverable,
}

impl AssetControl {
    /// Its name in interfaces.
    pub const fn name(self) -> &'static str {
        ASSET_CONTROLS[self as usize]
    }

    /// Whether the issuer freezes holders.
    pub fn freezes(self) -> bool {
        self != AssetControl::Open
    }

    /// Whether only those hold it that the issuer has admitted.
    pub fn admits(self) -> bool {
        matches!(self, AssetControl::Admitted | AssetControl::AdmittedRecoverable)
    }

    /// Whether the issuer recovers units of frozen holders.
    pub fn recovers(self) -> bool {
        matches!(self, AssetControl::Recoverable | AssetControl::AdmittedRecoverable)
    }
}

/// A text that names no control of an asset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is nothing that an issuer controls: open, freezable, admitted, recoverable or admitted_recoverable")]
pub struct AssetControlError(String);

impl FromStr for AssetControl {
    type Err = AssetControlError;

    fn from_str(name: &str) -> Result<AssetControl, AssetControlError> {
        use AssetControl::{Admitted, AdmittedRecoverable, Freezable, Open, Recoverable};
        let mut all = [Open, Freezable, Admitted, Recoverable, AdmittedRecoverable].into_iter();
        all.find(|control| control.name() == name).ok_or_else(|| AssetControlError(name.into()))
    }
}

/// What an issuer says of a holder of its asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum HolderState {
    /// The holder neither spends, buys nor receives the asset.
    Frozen,
    /// The holder does as others do.
    Open,
}

impl HolderState {
    /// Its name in interfaces.
    pub const fn name(self) -> &'static str {
        HOLDER_STATES[self as usize]
    }
}

/// The recovery of units of a holder who has been frozen for long.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HolderRecovery {
    /// The asset.
    pub asset: AssetId,
    /// The frozen holder.
    pub from: Address,
    /// The account that receives them: the issuer, or an open holder.
    pub to: Address,
    /// Units, of which the holder has at least as many.
    pub amount: Amount,
    /// What for.
    pub reference: Reference,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_else_an_issuer_controls_it_freezes() {
        use AssetControl::*;
        let flags = |one: AssetControl| (one.name(), one.freezes(), one.admits(), one.recovers());
        assert_eq!(
            [Open, Freezable, Admitted, Recoverable, AdmittedRecoverable].map(flags),
            [
                ("open", false, false, false),
                ("freezable", true, false, false),
                ("admitted", true, true, false),
                ("recoverable", true, false, true),
                ("admitted_recoverable", true, true, true),
            ]
        );
        assert_eq!(
            ASSET_CONTROLS.map(|name| name.parse::<AssetControl>().map(AssetControl::name)),
            ASSET_CONTROLS.map(Ok)
        );
        assert!("closed".parse::<AssetControl>().expect_err("none").to_string().contains("open, freezable"));
        assert_eq!([HolderState::Frozen, HolderState::Open].map(HolderState::name), HOLDER_STATES);
    }
}
