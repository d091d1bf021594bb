//! How a market begins: the venue, its traders with keys and deposits, and the root of each incarnation.

use kernel::FaultDisk;
use primitives::venue::VenueOperation;
use venue::{SettlingTerms, VenueInput, VenueOptions, VenueSettings};

use super::MarketWorld;
use super::host::Host;
use super::issuer;
use super::people::{
    self, BOND, DELAY, DEPOSIT, EUR, EVERYBODY, FEE, MARKET, OWNER, Person, VENUE, deposit, limits, market,
    market_settings, operator, terms,
};
use crate::world::Mistake;

impl MarketWorld {
    /// A venue with a market, and traders with keys and deposits.
    pub(super) fn found(&mut self) -> Result<(), String> {
        issuer::admit_first(&mut self.chain)?;
        let open =
            VenueOperation::Open { venue: VENUE, operator: operator(0), fee_cap_ppm: people::FEE_CAP_PPM, bond: BOND };
        self.chain.must(vec![(OWNER, open)])?;
        self.chain.must(vec![(OWNER, VenueOperation::List { venue: VENUE, market: MARKET, terms: market() })])?;
        for asset in people::ASSETS {
            let is_open =
                |person: &Person| asset != EUR || self.chain.oracle.holders.is_open(&people::address(*person));
            let who = EVERYBODY.into_iter().filter(is_open);
            self.chain.must(who.map(|person| (person, deposit(asset, DEPOSIT))).collect())?;
        }
        let network = self.chain.network();
        self.chain.must(EVERYBODY.map(|person| (person, self.traders.authorize(person, &network))).to_vec())?;
        issuer::freeze_first(&mut self.chain)?;
        self.begin()
    }

    /// The root of the present incarnation, on an empty disk, honest.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        let incarnation = self.chain.oracle.incarnation;
        let people_terms = terms(DELAY, self.traders.lists.is_some());
        let settling = SettlingTerms {
            chain: 1,
            fee: FEE,
            delay: DELAY,
            bond_min: people_terms.bond_min,
            settle_bytes: people_terms.settle_bytes,
            entries_max: people_terms.entries_max,
            life_max: people_terms.life_max,
        };
        let (network, changes) = (self.chain.network(), self.chain.oracle.changes);
        let operator = operator(changes);
        let settings =
            VenueSettings { network, venue: VENUE, incarnation, operator, terms: settling, limits: limits() };
        let options = VenueOptions {
            mistake: self.options.mistake.and_then(Mistake::of_venue).into(),
            ..VenueOptions::default()
        };
        let disk = FaultDisk::new(self.dice.bits());
        let host = Host::new(disk, settings, options, self.options.mistake.and_then(Mistake::of_market), changes)?;
        self.hosts = vec![host];
        (self.has_cheated, self.chain.settles) = (false, Vec::new());
        self.attach()?;
        self.certify(0)?;
        self.tell(0, &[VenueInput::OpenMarket(MARKET, market_settings())])?;
        let at = self.wire_moment();
        self.wires.begin(&at)
    }

    pub(super) fn attach(&mut self) -> Result<(), String> {
        let attach = self.traders.attach();
        for at in 0..self.hosts.len() {
            self.hosts[at].attach = attach.clone();
            self.tell(at, &attach)?;
        }
        Ok(())
    }
}
