//! Clients who issue controlled assets: they freeze, admit and open holders, recover too early, and say what they may
//! not.

use kernel::Dice;
use ledger::Ledger;
use primitives::{Address, AssetControl, AssetId, HolderRecovery, HolderState, Operation, Reference, ReferenceKind};

/// What issuers of assets know of their holders.
#[derive(Default)]
pub(crate) struct ControlClients {
    /// Accounts that hold something, or might.
    known: Vec<Address>,
    /// Controlled assets, with their issuers, and whether they are for admitted holders.
    assets: Vec<(AssetId, Address, bool)>,
    /// Frozen holders, or those that were never admitted, when somebody looked.
    frozen: Vec<(AssetId, Address)>,
}

/// What the issuer of a listed asset controls: mostly nothing.
pub(crate) fn control(dice: &mut Dice) -> AssetControl {
    use AssetControl::{Admitted, AdmittedRecoverable, Freezable, Open, Recoverable};
    [Open, Open, Open, Freezable, Freezable, Admitted, Recoverable, AdmittedRecoverable][dice.index(8)]
}

fn reference() -> Reference {
    Reference::read(ReferenceKind::Text, "case 7").expect("plain")
}

impl ControlClients {
    /// These accounts hold units at the genesis.
    pub fn new(known: Vec<Address>) -> ControlClients {
        ControlClients { known, ..ControlClients::default() }
    }

    /// What an issuer says next; `None` if nothing is controlled that anybody knows of.
    pub fn draw(&self, issuer: Address, dice: &mut Dice) -> Option<Operation> {
        let own: Vec<_> = self.assets.iter().filter(|(_, of, _)| *of == issuer || dice.once_in(20)).collect();
        if own.is_empty() {
            return None;
        }
        let (asset, _, admits) = *own[dice.index(own.len())];
        let frozen: Vec<Address> =
            self.frozen.iter().filter(|(of, _)| *of == asset).map(|(_, account)| *account).collect();
        let anybody = self.known[dice.index(self.known.len())];
        Some(match dice.below(8) {
            0 if !frozen.is_empty() => {
                let (from, amount) = (frozen[dice.index(frozen.len())], 1 + dice.below(1_000));
                Operation::Recover(Box::new(HolderRecovery { asset, from, to: issuer, amount, reference: reference() }))
            }
            0..3 => self.say(asset, anybody, HolderState::Frozen),
            3 if admits => self.say(asset, anybody, HolderState::Open),
            _ if frozen.is_empty() => self.say(asset, anybody, HolderState::Frozen),
            _ => self.say(asset, frozen[dice.index(frozen.len())], HolderState::Open),
        })
    }

    fn say(&self, asset: AssetId, account: Address, state: HolderState) -> Operation {
        Operation::SetHolder { asset, account, state, reference: reference() }
    }

    /// Clients read what is controlled, and who is frozen.
    pub fn look(&mut self, ledger: &Ledger) {
        let controls = ledger.controls();
        let asset = |(asset, control): (AssetId, AssetControl)| {
            (asset, ledger.assets()[asset.0 as usize].issuer, control.admits())
        };
        self.assets = controls.assets().into_iter().map(asset).collect();
        let all = self.assets.iter().flat_map(|(asset, ..)| self.known.iter().map(move |account| (*asset, *account)));
        let is_open =
            |(asset, account): &(AssetId, Address)| controls.standing(*asset, account) == ledger::HolderStanding::Open;
        self.frozen = all.filter(|holder| !is_open(holder)).collect();
    }
}
