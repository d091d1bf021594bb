//! Every mistake that a world can be told to make is found by its seed, by the check that should find it; without the
//! mistake the same run holds.

use sim::{FOUND_ELSEWHERE, Failure, FoundMistake, Mistake, Scene, found};

fn is_found(of: impl Fn(&Scene) -> bool) {
    for one in found().filter(|one| of(&one.scene)) {
        let FoundMistake { mistake, seed, says, .. } = one;
        let failure = one.with_mistake().err().unwrap_or_else(|| panic!("{mistake:?} is not found by seed {seed}"));
        assert!(failure.what.contains(says), "{mistake:?} is found by another check: {failure}");
    }
}

#[test]
fn every_mistake_has_a_seed() {
    let is_listed = |mistake: &Mistake| found().any(|one| one.mistake == *mistake) || FOUND_ELSEWHERE.contains(mistake);
    assert_eq!(Mistake::all().find(|mistake| !is_listed(mistake)), None);
}

#[test]
fn each_mistake_of_one_node_is_found() {
    is_found(|scene| *scene == Scene::Solo);
}

#[test]
fn each_mistake_of_validators_is_found() {
    is_found(|scene| *scene == Scene::Validators);
}

#[test]
fn each_mistake_around_the_lane_is_found() {
    is_found(|scene| matches!(scene, Scene::Lane(_)));
}

#[test]
fn each_mistake_around_a_market_is_found() {
    is_found(|scene| *scene == Scene::Market);
}

/// The runs of lanes and markets are those of `lane_seeds` and `market_seeds`.
#[test]
fn without_its_mistake_each_run_holds() {
    for one in found().filter(|one| !matches!(one.scene, Scene::Lane(_) | Scene::Market)) {
        one.without_mistake().unwrap_or_else(|failure| panic!("without {:?}: {failure}", one.mistake));
    }
}

/// Prints what networks with a sealing key find at some seeds of the mistakes of seats and of unsealing, and whether
/// the same runs hold without them.
#[test]
#[ignore = "a search, not a check"]
fn search_networks_that_find_mistakes_of_sealing() {
    for mistake in Mistake::all().filter(|one| matches!(one, Mistake::Seat(_) | Mistake::Unseal(_))) {
        for seed in 0..5 {
            let one = FoundMistake { mistake, scene: Scene::Validators, seed, says: "" };
            let what = |run: Result<(), Failure>| run.err().map(|failure| failure.what);
            println!(
                "{mistake:?} {seed}: {:?}; without it {:?}",
                what(one.with_mistake()),
                what(one.without_mistake())
            );
        }
    }
}

/// Prints a seed at which each mistake is found by the check that should find it, its own one if that still does: for
/// whoever changes a world. With `MISTAKE`, of those whose name has this in it.
#[test]
#[ignore = "a search, not a check"]
fn search_seeds_of_mistakes() {
    let named = std::env::var("MISTAKE").unwrap_or_default();
    for one in found().filter(|one| format!("{:?}", one.mistake).contains(&named)) {
        let finds = |seed: &u64| {
            let found = FoundMistake { seed: *seed, ..one }.with_mistake().err();
            found.is_some_and(|failure| failure.what.contains(one.says))
        };
        println!("{:?} {:?}: {:?}", one.mistake, one.scene, std::iter::once(one.seed).chain(0..1_000).find(finds));
    }
}
