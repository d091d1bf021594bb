//! Forks of Ethereum begin with the block at their height, and only there.

use crate::developer::developers;
use crate::evm::*;
use ledger::contracts::{EthereumFault, EthereumRequest, EthereumRules, EvmStatus, Skip, SpecId, check_in_section};
use ledger::{Fork, ForkSchedule, Genesis, GenesisError, Ledger, Restore, Roots, Signatures, Snapshot, SnapshotError};
use primitives::{Address, Height};

fn forked(steps: &[(Height, Fork)]) -> Genesis {
    Genesis { forks: ForkSchedule::new(steps.to_vec()).expect("sound"), ..developers() }
}

fn signed(from: u8, request: EthereumRequest) -> Vec<u8> {
    key(from).sign(&EthereumRequest { chain: ledger::DEVELOPERS_CHAIN, ..request })
}

/// From Amsterdam on, moved wei are logged (EIP-7708), and a call of oneself costs 12,000 gas (EIP-2780).
#[test]
fn a_fork_begins_with_the_block_at_its_height() {
    let mut chain = Chain::of(&forked(&[(0, Fork::Osaka), (2, Fork::Bpo1), (3, Fork::Amsterdam)]));
    let to = key(5).address();
    let seen: Vec<(usize, Vec<Skip>, u64)> = (1..=4)
        .map(|height| {
            let paid = signed(0, EthereumRequest { value: 5, gas_limit: 60_000, ..request(height - 1, Some(to)) });
            let own = request(chain.nonce(&key(1).address()), Some(key(1).address()));
            let own = signed(1, EthereumRequest { gas_limit: 12_000, ..own });
            let applied = chain.run(vec![vec![paid, own]]);
            let skipped = applied.contracts.skipped.iter().map(|(_, why)| *why).collect();
            let first = &applied.contracts.receipts[0];
            (first.logs.len(), skipped, first.gas_used)
        })
        .collect();
    let (before, since) = ((0, vec![Skip::Malformed], 21_000), (1, vec![], 21_000));
    assert_eq!(seen, [before.clone(), before, since.clone(), since]);
}

/// What a transaction costs before it does anything is judged by the fork, and by its sender once that is known.
#[test]
fn intrinsic_gas_and_code_follow_the_fork() {
    let rules = |spec| EthereumRules { chain: ledger::DEVELOPERS_CHAIN, spec };
    let judge = |bytes: &[u8], spec| check_in_section(bytes, rules(spec), &mut (1 << 30));
    let own = signed(1, EthereumRequest { gas_limit: 12_000, ..request(0, Some(key(1).address())) });
    let refused = judge(&own, SpecId::OSAKA).expect_err("refused");
    assert_eq!(refused, EthereumFault::IntrinsicGas { limit: 12_000, needed: 21_000 });
    let own = judge(&own, SpecId::AMSTERDAM).expect("enough");
    assert_eq!(own.check_from(&key(1).address(), SpecId::AMSTERDAM), Ok(()));
    let refused = own.check_from(&key(2).address(), SpecId::AMSTERDAM).expect_err("refused");
    assert!(matches!(refused, EthereumFault::IntrinsicGas { limit: 12_000, needed: 12_001.. }), "{refused}");
    let long = signed(0, EthereumRequest { data: vec![0; 49_153], gas_limit: 1 << 24, ..request(0, None) });
    assert_eq!(judge(&long, SpecId::OSAKA).err(), Some(EthereumFault::InitCode { got: 49_153, most: 49_152 }));
    assert!(judge(&long, SpecId::AMSTERDAM).is_ok());
}

/// Whatever programs do under Amsterdam, also across its first block, `apply` finds all wei. A ledger that was restored
/// without its genesis continues identically: the schedule is part of the state.
#[test]
fn wei_sums_hold_over_random_programs_across_a_fork() {
    let mut met = std::collections::BTreeSet::new();
    for (seed, from) in [(0, 0), (1, 3), (2, 3), (3, 4)] {
        let steps: &[_] =
            if from == 0 { &[(0, Fork::Amsterdam)] } else { &[(0, Fork::Osaka), (from, Fork::Amsterdam)] };
        let genesis = forked(steps);
        let (mut chain, mut restored) = (Chain::of(&genesis), None);
        let mut replayed = Ledger::new(&genesis).expect("sound");
        for block in history_of(&genesis, 10, seed, 6, 40) {
            let applied = chain.apply(&block);
            met.extend(applied.contracts.receipts.iter().map(|receipt| receipt.status as u8));
            let again = replayed.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
            assert_eq!(again.contracts, applied.contracts);
            match &mut restored {
                None if block.height == 2 => restored = Some(chain.restored()),
                None => {}
                Some(restored) => assert_eq!(restored.apply(&block).contracts, applied.contracts),
            }
        }
        assert_eq!(restored.expect("the second block").root, chain.root);
    }
    let all = [EvmStatus::Succeeded, EvmStatus::Reverted, EvmStatus::Halted].map(|status| status as u8);
    assert_eq!(met, all.into());
}

/// Whoever offers a state cannot change its schedule: the root covers it, and the chunk has one place and one form.
#[test]
fn a_schedule_of_forks_is_under_the_root() {
    let root = |ledger: &Ledger| Roots::of(ledger).parts().root();
    let chain = Chain::of(&forked(&[(0, Fork::Osaka), (3, Fork::Bpo1)]));
    let usual = Chain::of(&developers());
    let chunks: Vec<Vec<u8>> = Snapshot::of(&chain.ledger).collect();
    let of_usual: Vec<Vec<u8>> = Snapshot::of(&usual.ledger).collect();
    assert_eq!(chunks.len(), of_usual.len() + 1, "a usual schedule takes no bytes");
    let at = chunks.iter().position(|chunk| !of_usual.contains(chunk) && chunk.len() < 40).expect("the schedule");
    let restored = |chunks: &[Vec<u8>]| {
        let mut restore = Restore::default();
        chunks.iter().try_for_each(|chunk| restore.push(chunk))?;
        restore.finish()
    };
    assert_eq!(root(&restored(&chunks).expect("whole")), chain.root);
    let mut cut = chunks.clone();
    let schedule = cut.remove(at);
    assert_ne!(root(&restored(&cut).expect("whole")), chain.root);
    let mut twice = chunks.clone();
    twice.insert(at, schedule.clone());
    let mut late = cut;
    late.insert(at + 1, schedule.clone());
    let mut unknown = chunks.clone();
    *unknown[at].last_mut().expect("a fork") = 9;
    let mut falling = chunks;
    let last = falling[at].len() - 1;
    falling[at][last] = 0;
    for wrong in [twice, late, falling] {
        assert!(matches!(restored(&wrong), Err(SnapshotError::OutOfPlace(_))));
    }
    assert!(matches!(restored(&unknown), Err(SnapshotError::Undecodable(..))));
}

#[test]
fn what_a_chain_cannot_run_is_refused() {
    let refused = |genesis: Genesis| Ledger::new(&genesis).err();
    let forks = |steps: &[(Height, Fork)]| ForkSchedule::new(steps.to_vec()).expect("sound");
    let finals = forks(&[(0, Fork::Osaka), (5, Fork::Bpo1), (6, Fork::Bpo2)]);
    assert_eq!(refused(Genesis { forks: finals.clone(), ..genesis() }), None);
    let unfinished = forks(&[(0, Fork::Osaka), (5, Fork::Amsterdam)]);
    assert!(matches!(refused(Genesis { forks: unfinished, ..genesis() }), Some(GenesisError::Forks(_))));
    let without = Genesis { limits: ledger::Limits::default(), ..genesis() };
    assert_eq!(refused(without.clone()), None);
    assert!(matches!(refused(Genesis { forks: finals, ..without }), Some(GenesisError::Forks(_))));
    let to = Address([7; 20]);
    let mut chain = Chain::new();
    assert_eq!(chain.run(vec![vec![send(0, 0, to, 1)]]).contracts.receipts[0].gas_used, 21_000);
}
