//! Books that no whole units clear in full at any prices: the clearing says so, and carries a proof.

use clearing::workload::thin;
use clearing::{
    Clearing, Division, Offer, Params, Reason, SortedOffers, UnitsProof, Violation, clear, verify, workload,
};
use primitives::AssetId;

fn offer(sell: u32, buy: u32, amount: u64, limit: &str) -> Offer {
    Offer { sell: AssetId(sell), buy: AssetId(buy), amount, limit: limit.parse().expect("a price") }
}

fn cleared(assets: u32, offers: &[Offer]) -> Clearing {
    let sorted = SortedOffers::new(assets, offers);
    let (book, params) = (sorted.book(), Params::default());
    let clearing = clear(&book, &params, None).expect("a proper book");
    verify(&book, &params, &clearing).expect("it verifies, proofs too");
    clearing
}

/// 5,164 units of asset 1 must fill and are worth 10.9 units of asset 0, of which the two others can trade 10 or 11.
fn dear() -> [Offer; 3] {
    [offer(0, 1, 2_934, "473.8"), offer(1, 2, 5_164, "0.5"), offer(2, 0, 3_000_000, "0.0021")]
}

fn proof_of(clearing: &Clearing) -> &UnitsProof {
    let [obstacle] = &clearing.report.obstacles[..] else { panic!("{:?}", clearing.report) };
    assert_eq!(obstacle.reason, Reason::Units);
    obstacle.proof.as_ref().expect("a proof")
}

#[test]
fn units_without_a_clearing_are_proved() {
    let clearing = cleared(3, &dear());
    assert!(!clearing.full);
    assert!(proof_of(&clearing).assets.len() == 3);
}

/// A proof for one book proves nothing for a similar one that has a full clearing.
#[test]
fn a_proof_of_what_is_false_is_refused() {
    let params = Params::default();
    let proof = proof_of(&cleared(3, &dear())).clone();
    let mut offers = dear();
    // A little more is worth a whole number of units of asset 0.
    let more = (5_165..5_700).find(|amount| {
        offers[1].amount = *amount;
        cleared(3, &offers).full
    });
    assert!(more.is_some());
    let sorted = SortedOffers::new(3, &offers);
    let book = sorted.book();
    let mut clearing = cleared(3, &offers);
    assert!(clearing.full && !proof.check(&book, &params));
    clearing.report.obstacles.push(clearing::Obstacle {
        reason: Reason::Units,
        assets: proof.assets.clone(),
        proof: Some(proof),
    });
    assert_eq!(verify(&book, &params, &clearing), Err(Violation::Proof(AssetId(0))));
}

/// Whatever its divisions are, no proof holds for a book that has a full clearing.
#[test]
fn no_division_proves_anything_of_full_books() {
    let params = Params::default();
    let mut full = 0;
    for seed in 0..120 {
        let offers = workload::of_few_units(1, 3, 12, seed);
        let clearing = cleared(3, &offers);
        if !clearing.full {
            continue;
        }
        full += 1;
        let sorted = SortedOffers::new(3, &offers);
        let book = sorted.book();
        let mut random = kernel::Dice::new(seed);
        for count in 0..40 {
            let mut division = || Division {
                offer: random.below(offers.len() as u64) as u32,
                is_paid: random.below(3) == 0,
                most: random.below(60),
            };
            let divisions = (0..count).map(|_| division()).collect();
            let proof = UnitsProof { assets: (0..3).map(AssetId).collect(), divisions };
            assert!(!proof.check(&book, &params), "seed {seed}: {proof:?}");
        }
    }
    assert!(full > 30, "{full}");
}

/// The bounds of a proof never exclude the full clearing that a book has: every case that contains it stays open.
#[test]
fn the_case_of_a_full_clearing_stays_open() {
    let params = Params::default();
    for seed in 0..200 {
        let book = thin::thin(seed, 60);
        let clearing = cleared(book.assets, &book.offers);
        let sorted = SortedOffers::new(book.assets, &book.offers);
        let assets: Vec<AssetId> = (0..book.assets).map(AssetId).collect();
        let proof = UnitsProof { assets, divisions: Vec::new() };
        assert!(!clearing.full || !proof.check(&sorted.book(), &params), "seed {seed}");
    }
}

/// Every proof has assets in order, and few.
#[test]
fn malformed_proofs_are_refused() {
    let (params, offers) = (Params::default(), dear());
    let sorted = SortedOffers::new(3, &offers);
    let book = sorted.book();
    let good = proof_of(&cleared(3, &offers)).clone();
    assert!(good.check(&book, &params));
    let assets = |ids: &[u32]| UnitsProof { assets: ids.iter().copied().map(AssetId).collect(), ..good.clone() };
    for bad in [assets(&[]), assets(&[1, 0, 2]), assets(&[0, 0, 1, 2]), assets(&[0, 1, 2, 3])] {
        assert!(!bad.check(&book, &params), "{bad:?}");
    }
    let spare = Division { offer: 0, is_paid: false, most: 1 };
    let longer = UnitsProof { divisions: [good.divisions.clone(), vec![spare]].concat(), ..good };
    assert!(!longer.check(&book, &params));
}

/// Thin books that the interior-point method leaves open: whole units are found at prices elsewhere in the band. Of the
/// last five, after hundreds of divisions.
#[test]
fn whole_units_are_found_at_other_prices() {
    for seed in [11_135, 24_256, 31_168, 57_229, 19_428, 43_947, 54_960, 74_264, 95_544] {
        let book = thin::thin(seed, 10_000);
        assert!(cleared(book.assets, &book.offers).full, "seed {seed}");
    }
}

/// Thin books whose offers would have whole units if they executed in any order, or if surpluses could be worth more
/// than what offers leave.
#[test]
fn order_and_value_prove_that_there_are_no_whole_units() {
    for seed in [3_201, 14_827, 146_509, 150_405] {
        let book = thin::thin(seed, 10_000);
        let clearing = cleared(book.assets, &book.offers);
        let proof = proof_of(&clearing);
        assert!(proof.divisions.len() < 60, "seed {seed}: {}", proof.divisions.len());
    }
}
