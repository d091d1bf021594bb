//! What a genesis founds: its digest, and its assets with what is issued.

use primitives::{Amount, DECIMALS_MAX, Digest, MAX_ISSUED, RULES_OF_LISTINGS};
use proofs::{Asset, RootPart};

use crate::places::Places;
use crate::places::assets::are_alike;
use crate::terms::{Genesis, GenesisError, Listing, RULES_FLOOR, RULES_NEWEST};

const CONTEXT: &str = "walras 2026 genesis v3";

impl Genesis {
    /// The digest that block 1 names as its parent.
    pub fn digest(&self) -> Digest {
        self.digest_of(Places::sections(self))
    }

    /// The digest of this genesis without its validators: a network's identity is made of this and of what the
    /// validators agree on.
    pub fn digest_without_validators(&self) -> Digest {
        let others = Places::sections(self).into_iter().filter(|(tag, _)| *tag != RootPart::STAKES);
        self.digest_of(others.collect())
    }

    /// Sections of places follow what every chain has, by tag; a place that a chain does not have adds nothing.
    fn digest_of(&self, sections: Vec<(u8, Vec<u8>)>) -> Digest {
        let Genesis { rules, chain, fee, epsilon, mu, limits, assets, balances, .. } = self;
        let bytes = borsh::to_vec(&(rules, chain, fee, epsilon, mu, limits, assets, balances, sections));
        Digest::of(CONTEXT, &bytes.expect("writing to memory cannot fail"))
    }

    /// The assets with their issued units at the start.
    ///
    /// # Errors
    /// [`GenesisError`] names the first wrong entry.
    pub fn issued_assets(&self) -> Result<Vec<Asset>, GenesisError> {
        if !(RULES_FLOOR..=RULES_NEWEST).contains(&self.rules) {
            return Err(GenesisError::Rules(self.rules));
        }
        let (mu, epsilon) = (self.mu, self.epsilon);
        let needed = clearing::least_units(epsilon, mu);
        if needed == Amount::MAX {
            return Err(GenesisError::Band { mu, epsilon });
        }
        let mut assets: Vec<Asset> = Vec::with_capacity(self.assets.len());
        for (number, Listing { symbol, decimals, issuer, least_units }) in self.assets.iter().enumerate() {
            // A part of an address on the web: `..` would name another one, and `-` an option of a command.
            let begins = symbol.starts_with(|first: char| first.is_ascii_alphanumeric());
            let plain = begins && symbol.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b));
            if !plain || !(1..=12).contains(&symbol.len()) || assets.iter().any(|asset| asset.symbol == *symbol) {
                return Err(GenesisError::Symbol(number, symbol.clone()));
            }
            let alike = assets.iter().find(|asset| are_alike(&asset.symbol, symbol));
            if let Some(other) = alike.filter(|_| self.rules >= RULES_OF_LISTINGS) {
                return Err(GenesisError::LookAlike(number, symbol.clone(), other.symbol.clone()));
            }
            if *decimals > DECIMALS_MAX {
                return Err(GenesisError::Decimals(number, *decimals));
            }
            let (symbol, least_units) = (symbol.clone(), *least_units);
            if least_units < needed || least_units > MAX_ISSUED {
                return Err(GenesisError::LeastUnits { number, symbol, given: least_units, needed });
            }
            let (decimals, issuer, valuation) = (*decimals, *issuer, None);
            assets.push(Asset { symbol, decimals, issuer, least_units, issued: 0, valuation });
        }
        if assets.is_empty() {
            return Err(GenesisError::NoAssets);
        }
        if let Some(fault) = Places::genesis_fault(self) {
            return Err(fault);
        }
        for (account, asset, amount) in Places::units(self) {
            let entry = assets.get_mut(asset.0 as usize).ok_or(GenesisError::UnknownAsset(account, asset))?;
            entry.issued = entry
                .issued
                .checked_add(amount)
                .filter(|issued| *issued <= MAX_ISSUED)
                .ok_or(GenesisError::TooMuch(asset))?;
        }
        self.check_limits()?;
        Ok(assets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::{Address, Fraction};

    #[test]
    fn a_symbol_is_a_name_that_an_address_on_the_web_can_hold() {
        let founded = |symbol: &str| {
            let assets = vec![Listing::new(symbol, 2, Address([1; 20]))];
            Genesis { assets, epsilon: Fraction::ZERO, mu: Fraction::power_of_two(10), ..Genesis::default() }
                .issued_assets()
        };
        for sound in ["USD", "x", "1INCH", "A.B-C_D", "BTC."] {
            assert!(founded(sound).is_ok(), "{sound}");
        }
        for wrong in ["..", ".", ".A", "-A", "_A", "", "A/B", "A B", "ABCDEFGHIJKLM"] {
            assert!(matches!(founded(wrong), Err(GenesisError::Symbol(0, _))), "{wrong:?}");
        }
    }
}
