//! Random transactions of a few people, sensible ones and every kind of invalid one.

use super::*;

pub const ASSETS: u32 = 4;
pub const PEOPLE: u8 = 10;

pub fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

pub fn address(person: u8) -> Address {
    key(person).public().address()
}

pub fn genesis(fee: u64, epsilon: Fraction) -> Genesis {
    let listing = |asset: u32| Listing {
        least_units: [4_096, 10_000, 2_115, 5_000][asset as usize % 4],
        ..Listing::new(format!("A{asset}"), 2, address(asset as u8))
    };
    let assets = (0..ASSETS).map(listing).collect();
    let balances = (0..PEOPLE)
        .flat_map(|person| (0..ASSETS).map(move |asset| (address(person), AssetId(asset), 3_000_000)))
        .filter(|(_, asset, _)| asset.0 != 3)
        .collect();
    let (mu, membership) = (Fraction::power_of_two(10), Some(membership()));
    let pools = Some(PoolTerms { fees: [9, 5].map(Fraction::power_of_two).to_vec() });
    let limits = Limits { resting_offers: 20, open_pairs: 7, validators: 6, ..Limits::default() };
    Genesis { chain: 7, fee, epsilon, mu, limits, assets, balances, membership, pools, ..Genesis::default() }
}

/// The key of a validator's node.
pub fn node_key(number: u8) -> SecretKey {
    SecretKey::from_seed([150 + number; 32])
}

/// Short epochs, a small pool, and four founders; three of them are drawn.
pub fn membership() -> Membership {
    let terms = Terms {
        network: Digest([42; 32]),
        schedule: Schedule { epoch_heights: 4, delay: 3 },
        committee: 3,
        minimum_stake: 50,
        unbonding_epochs: 1,
        reward: 3,
        slash: "0.3".parse().expect("a fraction"),
    };
    let founder = |number: u8| Member {
        account: address(number),
        key: node_key(number).public(),
        address: format!("v{number}.example:9100"),
        stake: 100 * (u64::from(number) + 1),
    };
    Membership { terms, reward_pool: 200, founders: (0..4).map(founder).collect() }
}

/// Draws an operation of an account on validators.
pub fn draw_staking(rng: &mut ChaCha8Rng, model: &Model, account: &Address) -> Operation {
    match rng.random_range(0..12) {
        0..5 => {
            let own = model
                .validators
                .registry
                .get(account)
                .and_then(|own| (0..20).find(|n| node_key(*n).public() == own.key));
            let number = own.filter(|_| rng.random_ratio(1, 2)).unwrap_or_else(|| rng.random_range(0..20));
            let units = [0, 10, 60, 300, 5_000][rng.random_range(0..5)];
            let place = if rng.random_ratio(1, 20) {
                "nowhere".into()
            } else {
                format!("v{number}.example:{}", 1 + rng.random_range(0..3))
            };
            let mut stake = Stake::new(units, place, 7, account, &node_key(number));
            if rng.random_ratio(1, 20) {
                stake.key = node_key((number + 1) % 20).public();
            }
            Operation::Stake(Box::new(stake))
        }
        5..9 => {
            let staked = model.validators.registry.get(account).map_or(10, |own| own.stake);
            let units = [staked, staked + 1, staked / 3, 10][rng.random_range(0..4)];
            Operation::Unstake { units }
        }
        _ => Operation::Accuse(Box::new(draw_evidence(rng, model))),
    }
}

/// Draws an operation of an account on one of few pools.
pub fn draw_pool(rng: &mut ChaCha8Rng, model: &Model, account: &Address) -> Operation {
    let any = |rng: &mut ChaCha8Rng| {
        let a = rng.random_range(0..2);
        let class = if rng.random_ratio(1, 30) { 2 } else { rng.random_range(0..2) };
        let b = if rng.random_ratio(1, 30) { a } else { rng.random_range(a + 1..ASSETS - 1) };
        PoolKey { a: AssetId(a), b: AssetId(b), class }
    };
    let own: Vec<PoolKey> =
        model.pools.holdings.keys().filter(|(_, of)| of == account).map(|(pool, _)| *pool).collect();
    let kind = rng.random_range(0..10);
    let pool = if kind >= 6 && !own.is_empty() { own[rng.random_range(0..own.len())] } else { any(rng) };
    let near =
        |rng: &mut ChaCha8Rng, units: u64| [units, units + 1, units.saturating_sub(1), 0][rng.random_range(0..4)];
    let shares = match rng.random_range(0..12) {
        0 => 0,
        1 => u64::MAX,
        2 => 1,
        _ => rng.random_range(1..1 << 23),
    };
    let known = model.pools.pools.get(&pool);
    Operation::Pool(Box::new(match kind {
        0..2 => {
            PoolOperation::Open { pool, x: rng.random_range(50_000..900_000), y: rng.random_range(50_000..900_000) }
        }
        2..6 => {
            let [a, b] = known.map_or([1u8.into(), 1u8.into()], |pool| pool.cost(shares));
            let most = |rng: &mut ChaCha8Rng, cost| {
                let cost = u64::try_from(cost).unwrap_or(7);
                if rng.random_ratio(3, 4) { cost + rng.random_range(0..1_000) } else { near(rng, cost) }
            };
            PoolOperation::Provide { pool, shares, most_a: most(rng, a), most_b: most(rng, b) }
        }
        _ => {
            let held = model.pools.shares((pool, *account));
            let shares = [held, held + 1, held / 3, shares][rng.random_range(0..4)];
            let [a, b] = known.map_or([1u8.into(), 1u8.into()], |pool| pool.pays(shares));
            let least = |rng: &mut ChaCha8Rng, pays| near(rng, u64::try_from(pays).unwrap_or(7));
            let (least_a, least_b) = if rng.random_ratio(1, 4) { (least(rng, a), least(rng, b)) } else { (0, 0) };
            PoolOperation::Leave { pool, shares, least_a, least_b }
        }
    }))
}

/// Draws an exact order: some too small, some for more than there is, some beyond the rate.
pub fn draw_exact(rng: &mut ChaCha8Rng, sell: AssetId, buy: AssetId) -> Operation {
    let units = match rng.random_range(0..20) {
        0 => 0,
        1 => u64::MAX,
        2 => rng.random_range(1..4_000),
        3..6 => rng.random_range(100_000..1_000_000),
        _ => rng.random_range(4_000..20_000),
    };
    let bound = match rng.random_range(0..20) {
        0 => 0,
        1 => i64::MAX as u64 + rng.random_range(0..2),
        _ => (units as f64 * rng.random_range(0.9..1.15)) as u64,
    };
    let side = if rng.random() { ExactSide::Buy } else { ExactSide::Sell };
    Operation::Exact { sell, buy, side, units, bound, client: ClientId([rng.random(); 16]) }
}

/// One of the few keys that accounts authorise.
pub fn session_key(number: u8) -> SecretKey {
    SecretKey::from_seed([number, 77].repeat(16).try_into().expect("32 bytes"))
}

/// Draws an operation on session keys: most authorise or keep alive, some twice or out of bounds.
pub fn draw_session(rng: &mut ChaCha8Rng, model: &Model, person: u8) -> Operation {
    let (account, next) = (address(person), model.validators.height + 1);
    let sessions = model.accounts.get(&account).map(|account| account.sessions.clone()).unwrap_or_default();
    let live: Vec<u64> = sessions.live.keys().copied().collect();
    let slot = match live.is_empty() || rng.random_ratio(1, 10) {
        true => rng.random_range(0..sessions.slots + 3),
        false => live[rng.random_range(0..live.len())],
    } as u32;
    let through = next + rng.random_range(0..6);
    let operation = match rng.random_range(0..10) {
        0..5 => {
            let number = rng.random_range(0..24);
            let owner = rng.random_ratio(1, 30);
            let secret = if owner { key(person) } else { session_key(number) };
            let slot = sessions.slots as u32 + [1, 1, 1, 1, 1, 2, 0][rng.random_range(0..7)];
            let until = next + rng.random_range(0..24) + if rng.random_ratio(1, 40) { LIFE_MAX } else { 0 };
            let alive = until.saturating_sub(rng.random_range(0..8));
            let scope = if rng.random_ratio(1, 5) { SessionScope::Cancel } else { SessionScope::Trade };
            let cap = |asset: u32, units: u64| SessionCap { asset: AssetId(asset), units };
            let of_one = |asset, rng: &mut ChaCha8Rng| match rng.random_range(0..12) {
                0 => cap(asset, 0),
                1 => cap(asset, i64::MAX as u64),
                _ => cap(asset, rng.random_range(100..60_000)),
            };
            let mut caps: Vec<SessionCap> = (0..ASSETS).map(|asset| of_one(asset, rng)).collect();
            caps.retain(|_| rng.random_ratio(7, 8));
            if rng.random_ratio(1, 30) {
                caps.reverse();
            }
            let of = if rng.random_ratio(1, 30) { slot + 1 } else { slot };
            let possession = secret.sign(&session_possession_bytes(&model.network, &account, of, &secret.public()));
            let terms = SessionTerms { slot, key: secret.public(), scope, until, alive, caps: caps.into() };
            SessionOperation::Authorize { terms, possession }
        }
        5 => SessionOperation::Revoke { slot },
        6 => SessionOperation::Alive { slot, through: 0 },
        _ => SessionOperation::Alive { slot, through },
    };
    Operation::Session(Box::new(operation))
}

/// Signs as one of the account's session keys would, if it has any.
pub fn signed_by_session(
    rng: &mut ChaCha8Rng,
    model: &Model,
    account: Address,
    operation: &Operation,
) -> Option<Transaction> {
    let sessions = &model.accounts.get(&account)?.sessions;
    let live: Vec<(&u64, &ModelSession)> = sessions.live.iter().collect();
    let (slot, session) = *live.get(rng.random_range(0..live.len().max(1)))?;
    let number = match rng.random_range(0..20) {
        0 => session.highest() + 60 + rng.random_range(0..8),
        1 => session.highest().saturating_sub(rng.random_range(0..70)),
        _ => session.highest() + rng.random_range(1..12),
    };
    let wrong = rng.random_ratio(1, 40);
    let secret = (0..24).map(session_key).find(|secret| (secret.public() == session.key) != wrong)?;
    let sequence = slot_sequence(*slot as u32 + u32::from(rng.random_ratio(1, 40)), number);
    let mut operation = operation.clone();
    if let Operation::Replace(replace) = &mut operation
        && let Some((pair, place)) = model.open(&account, *slot).first()
        && rng.random_ratio(3, 4)
    {
        replace.old = OfferPlace { sell: pair.sell, buy: pair.buy, limit: place.limit, offer: place.id };
        replace.remains = model.offers[&(*pair, *place)].0 + [0, 3_000][rng.random_range(0..2)];
    }
    let until = model.validators.height + 1 + rng.random_range(0..3);
    Some(Body { chain: 7, account, sequence, until, operation }.sign(&model.network, &secret))
}

/// Mostly evidence that proves nothing, because every conviction costs a validator.
pub fn draw_evidence(rng: &mut ChaCha8Rng, model: &Model) -> Evidence {
    let epoch = (model.validators.committees.len() as u64).saturating_sub(rng.random_range(0..6));
    let committee = model.validators.committees.get(epoch as usize);
    let member = rng.random_range(0..4);
    let key = committee.and_then(|members| members.get(usize::from(member))).map(|member| member.key);
    let secret = (0..20).map(node_key).find(|secret| Some(secret.public()) == key).unwrap_or_else(|| node_key(0));
    let (height, is_true) = (rng.random_range(1..100), rng.random_ratio(1, 8));
    let scope = Scope { network: Digest([42; 32]), epoch };
    let one = |number: u8| Digest([number; 32]);
    let (first, second) = (one(1), one(if is_true || rng.random() { 2 } else { 1 }));
    let signer = if is_true || first == second { secret } else { key_of_nobody() };
    let (round, kind) = (rng.random_range(0..3), VoteKind::Precommit);
    let value = |digest| RoundValue { slot: 1, digest };
    let contradiction = match rng.random_range(0..4) {
        0 => Contradiction::Proposals([first, second].map(|payload| Proposed {
            payload,
            length: 9,
            signature: signer.sign(&scope.proposal(height, member, &payload, 9).0),
        })),
        1 => Contradiction::Commits([first, second].map(|root| Committed {
            superblock: one(3),
            root,
            signature: signer.sign(&scope.commit(height, &one(3), &root).0),
        })),
        2 => {
            let votes = [first, second].map(|digest| {
                // A vote for nil contradicts one for a value.
                let value = (digest == one(2)).then_some(value(digest));
                let signature = signer.sign(&scope.round_vote(height, round, kind, value.as_ref()).0);
                RoundVoted { value, signature }
            });
            Contradiction::RoundVotes { round, kind, votes }
        }
        _ => {
            let proposals = [first, second].map(|digest| {
                let (value, valid_round) = (value(digest), None);
                let signature = signer.sign(&scope.round_proposal(height, round, &value, valid_round).0);
                RoundProposed { value, valid_round, signature }
            });
            Contradiction::RoundProposals { round, proposals }
        }
    };
    Evidence { epoch, member, height, contradiction }
}

pub fn key_of_nobody() -> SecretKey {
    SecretKey::from_seed([255; 32])
}

/// The presence of an account's validator, sometimes invalid in one of the ways that the filter knows.
fn draw_presence(rng: &mut ChaCha8Rng, model: &Model) -> Transaction {
    let account = address(rng.random_range(0..PEOPLE));
    let own = model.validators.registry.get(&account).map(|own| own.key);
    let own = (0..20).map(node_key).find(|node| Some(node.public()) == own);
    let secret = own.filter(|_| !rng.random_ratio(1, 12)).unwrap_or_else(|| node_key(rng.random_range(0..20)));
    let epoch = model.validators.next_drawn() + [0, 0, 0, 0, 1][rng.random_range(0..5)];
    let sequence = u64::from(rng.random_ratio(1, 20));
    let until = model.validators.height + [0, 1, 2, 3][rng.random_range(0..4)];
    Body { chain: 7, account, sequence, until, operation: Operation::Present { epoch } }.sign(&model.network, &secret)
}

/// Draws a transaction: usually valid, sometimes invalid in one of the ways that the filter knows.
pub fn draw(rng: &mut ChaCha8Rng, model: &Model) -> Transaction {
    if rng.random_ratio(1, 14) {
        return draw_presence(rng, model);
    }
    let person = rng.random_range(0..PEOPLE + 2);
    let account = address(person);
    let asset = |rng: &mut ChaCha8Rng| {
        let unknown = u32::from(rng.random_ratio(1, 60));
        AssetId(rng.random_range(0..ASSETS + unknown))
    };
    let amount = |rng: &mut ChaCha8Rng| match rng.random_range(0..40) {
        0 => 0,
        1 => 5_000_000,
        2 => i64::MAX as u64 - rng.random_range(0..8_000_000),
        3 => u64::MAX,
        // Remainders of small offers are too small to rest.
        4..32 => rng.random_range(4_000..16_000),
        _ => rng.random_range(1..400_000),
    };
    let highest = model.accounts.get(&account).and_then(|a| a.used.last().copied()).unwrap_or(0);
    let sequence: Sequence = match rng.random_range(0..30) {
        0 => highest + 65 + rng.random_range(0..3),
        1 => highest.saturating_sub(rng.random_range(0..70)),
        2 => highest + 64,
        _ => highest + rng.random_range(1..20),
    };
    let operation = match rng.random_range(0..38) {
        31..35 => draw_session(rng, model, person),
        28..31 | 35.. => {
            let (sell, buy) = (asset(rng), asset(rng));
            draw_exact(rng, sell, buy)
        }
        20..24 => draw_staking(rng, model, &account),
        24..28 => draw_pool(rng, model, &account),
        0 => {
            // A new account that other transactions of the block are likely to pick, too, or any account.
            let fresh = PEOPLE + 12 + (model.accounts.len() % 100) as u8;
            let other = if rng.random_ratio(1, 2) { fresh } else { rng.random_range(0..PEOPLE + 12) };
            let own = rng.random_ratio(1, 2);
            let new_key = key(other).public();
            let bad = rng.random_ratio(1, 8);
            let named = if bad { Address([9; 20]) } else { new_key.address() };
            Operation::CreateAccount { account: if own { account } else { named }, key: new_key }
        }
        1..=3 => {
            let mine: Vec<_> =
                model.offers.keys().filter(|(_, place)| place.account == account || rng.random_ratio(1, 20)).collect();
            let named = |(Pair { sell, buy }, Place { limit, id, .. }): &(Pair, Place)| OfferPlace {
                sell: *sell,
                buy: *buy,
                limit: *limit,
                offer: *id,
            };
            let absent = OfferPlace { sell: AssetId(0), buy: AssetId(1), limit: Price::ONE, offer: 1 };
            if rng.random_ratio(2, 5) {
                let old = mine.first().map_or(absent, |mine| named(mine));
                let rests = mine.first().map_or(9_000, |mine| model.offers[*mine].0);
                // What the sender believes is often more than what rests.
                let remains =
                    rests + [0, 0, 3_000, 20_000][rng.random_range(0..4)] - u64::from(rng.random_ratio(1, 12));
                let limit = Price::from_f64(f64::from(rng.random_range(900..1_100)) / 1_000.0).expect("in range");
                let life =
                    [Life::Rests, Life::Until(model.validators.height + 3), Life::OneBatch][rng.random_range(0..3)];
                let (amount, client) = (rng.random_range(4_000..40_000), ClientId::NONE);
                let operation =
                    Operation::Replace(Box::new(OfferReplacement { old, remains, amount, limit, life, client }));
                return signed_by(rng, model, person, sequence, operation);
            }
            // Lists that share offers with other lists of the block, name offers that do not rest, or one twice.
            let mut list: Vec<OfferPlace> = mine.iter().map(|mine| named(mine)).collect();
            list.shuffle(rng);
            list.truncate([1, 1, 2, 9][rng.random_range(0..4)]);
            if list.is_empty() || rng.random_ratio(1, 8) {
                list.push(absent);
            }
            if rng.random_ratio(1, 40) {
                list.push(list[0]);
            }
            // The number may be that of an offer of this very block.
            if rng.random_ratio(1, 8) {
                list.push(OfferPlace { offer: highest + rng.random_range(1..20), ..list[0] });
            }
            Operation::Cancel(list.into())
        }
        4..=6 => {
            Operation::Pay { to: address(rng.random_range(0..PEOPLE + 4)), asset: asset(rng), amount: amount(rng) }
        }
        7 => {
            let asset = if u32::from(person) < ASSETS { AssetId(u32::from(person)) } else { asset(rng) };
            let amount = if rng.random_ratio(1, 4) { i64::MAX as u64 - 7 } else { amount(rng) };
            Operation::Issue { to: address(rng.random_range(0..PEOPLE)), asset, amount }
        }
        8 => Operation::Burn { asset: asset(rng), amount: amount(rng) },
        _ => {
            let limit = f64::from(rng.random_range(900..1_100)) / 1_000.0;
            let limit = if rng.random_ratio(1, 30) { 1e12 } else { limit };
            let limit = Price::from_f64(limit).expect("in range");
            let life = match rng.random_range(0..16) {
                0 => Life::OneBatch,
                1..4 => Life::Until(
                    (model.validators.height + rng.random_range(1..6))
                        .saturating_sub(u64::from(rng.random_ratio(1, 6))),
                ),
                4 if rng.random_ratio(1, 3) => Life::Until(model.validators.height + 2 + LIFE_MAX),
                _ => Life::Rests,
            };
            let client = ClientId([rng.random(); 16]);
            Operation::CreateOffer { sell: asset(rng), buy: asset(rng), amount: amount(rng), limit, life, client }
        }
    };
    signed_by(rng, model, person, sequence, operation)
}

/// Signs as the person would, sometimes in an invalid way.
pub fn signed_by(
    rng: &mut ChaCha8Rng,
    model: &Model,
    person: u8,
    sequence: Sequence,
    operation: Operation,
) -> Transaction {
    let account = address(person);
    if rng.random_ratio(2, 5)
        && let Some(transaction) = signed_by_session(rng, model, account, &operation)
    {
        return transaction;
    }
    let chain = 7 + u64::from(rng.random_ratio(1, 60));
    let signer = match model.accounts.get(&account).and_then(|a| a.key) {
        Some(registered) => (0..200).find(|p| key(*p).public() == registered).expect("one of the test's keys"),
        None => person,
    };
    let signer = if rng.random_ratio(1, 60) { signer + 1 } else { signer };
    // An invalid signature has a flipped bit, or is for another network.
    let (is_false, is_elsewhere) = (rng.random_ratio(1, 60), sequence.is_multiple_of(2));
    let network = if is_false && is_elsewhere { Digest([43; 32]) } else { model.network };
    let until = match rng.random_range(0..60) {
        0 => model.validators.height,
        1 => model.validators.height + 100_002,
        _ => model.validators.height + 1 + rng.random_range(0..3),
    };
    let mut transaction = Body { chain, account, sequence, until, operation }.sign(&network, &key(signer));
    if is_false
        && !is_elsewhere
        && let SignedBy::Key { signature, .. } = &mut transaction.signed_by
    {
        signature.0[40] ^= 1;
    }
    transaction
}
