//! Signed reports of fills as options of OUCH: a single one fits into one, and one of a step takes several.

use primitives::venue::VenueReport;
use protocols::ouch::OuchOption;

use super::{FILL_REPORT, STEP_REPORT};

/// The most bytes of an option's value.
const PART: usize = 254;

/// The options that have a report.
pub(crate) fn options_of(report: &VenueReport) -> Vec<OuchOption> {
    let tag = if matches!(report, VenueReport::Single(_)) { FILL_REPORT } else { STEP_REPORT };
    report.to_bytes().chunks(PART).map(|part| OuchOption::Unknown { tag, value: part.to_vec() }).collect()
}

/// Takes the report out of options; nothing if they have none.
pub(crate) fn take(options: &mut Vec<OuchOption>) -> Option<borsh::io::Result<VenueReport>> {
    let mut bytes = Vec::new();
    options.retain(|option| match option {
        OuchOption::Unknown { tag: FILL_REPORT | STEP_REPORT, value } => {
            bytes.extend_from_slice(value);
            false
        }
        _ => true,
    });
    (!bytes.is_empty()).then(|| VenueReport::of_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use primitives::venue::{FillReport, SignedStep};
    use primitives::{Address, Digest, SecretKey};
    use protocols::ouch::{OuchExecuted, OuchMessage, OuchOutbound};

    use super::*;

    #[test]
    fn reports_of_both_forms_pass_as_options_whatever_their_length() {
        let key = SecretKey::from_seed([1; 32]);
        let (network, leaf, account) = (Digest([3; 32]), Digest([4; 32]), Address([5; 20]));
        let single = VenueReport::Single(FillReport::new(&network, (1, 2, 9), leaf, account, &key));
        let of_step = |leaves: usize| {
            let leaves = vec![(9, leaf, account); leaves];
            VenueReport::Step(SignedStep::new(&network, (1, 2), (3, 4), &leaves, &key).report(0, leaves[0]))
        };
        for report in [single, of_step(2), of_step(4), of_step(5), of_step(1 << 10), of_step(1 << 12)] {
            let (nanoseconds, user_ref, quantity, price, liquidity, matched) = (1, 2, 3, 4, b'A', 9);
            let executed = OuchExecuted { nanoseconds, user_ref, quantity, price, liquidity, matched };
            let body = OuchOutbound::Executed(executed);
            let mut bytes = Vec::new();
            OuchMessage { body, options: Some(options_of(&report)) }.encode(&mut bytes).expect("it fits");
            let mut read = OuchMessage::<OuchOutbound>::decode(&bytes).expect("as encoded").options.expect("options");
            assert_eq!(take(&mut read).expect("a report").expect("its bytes"), report);
            assert_eq!(read, []);
        }
        assert!(take(&mut Vec::new()).is_none());
        let broken = vec![OuchOption::Unknown { tag: STEP_REPORT, value: vec![1, 2, 3] }];
        assert!(take(&mut broken.clone()).expect("there is something").is_err());
    }
}
