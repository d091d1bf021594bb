//! What to do about an error of a purse, on the command line.

use client::purse::{PurseError, PurseRemedy, ReceiptFault};

use crate::light;

/// The error with what to do about it.
pub fn advised(error: anyhow::Error) -> anyhow::Error {
    let Some(advice) = error.downcast_ref::<PurseError>().and_then(advice) else { return error };
    anyhow::anyhow!("{}. {advice}", terminal::in_words(&error))
}

fn advice(error: &PurseError) -> Option<String> {
    Some(match error.remedy() {
        PurseRemedy::AsSaid => return None,
        PurseRemedy::AsLightSays => match error {
            PurseError::Light(error) => light::advice(error.remedy())?.into(),
            _ => return None,
        },
        PurseRemedy::AnotherNode => "Give another --server".into(),
        PurseRemedy::AMember => "Give the --server of a member, or set [lane] addresses".into(),
        PurseRemedy::Genesis => "Try again later, or give --genesis".into(),
        PurseRemedy::OtherFolder => "Choose another --purse".into(),
        PurseRemedy::MakeOne => match error {
            PurseError::NoPurse(folder) => format!("Make one with: walras pay new --purse {}", folder.display()),
            _ => return None,
        },
        PurseRemedy::NameValidators => "Name them once with: walras pay trust --genesis FILE".into(),
        PurseRemedy::NewStart => {
            "`walras pay trust --pin` takes a newer start; `walras pay trust --help` says more".into()
        }
        PurseRemedy::Trees => "`--scheme merkle` works in every lane epoch".into(),
        PurseRemedy::Look => {
            "`walras pay balance` shows what there is; `walras pay settle` ends what is pending".into()
        }
        PurseRemedy::SendAgain => "`walras pay settle` sends the same bytes again; if validators still refuse it, \
                                   `walras pay contest` returns its money to the ledger"
            .into(),
        PurseRemedy::Post => match error {
            PurseError::NotForUs(ReceiptFault::PaysAccounts) => "Use walras pay redeem --key KEY FILE".into(),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_under_others_keeps_its_words_and_gets_a_remedy() {
        let error = anyhow::Error::from(PurseError::NoPurse("here".into())).context("to pay");
        let said = format!("{:#}", advised(error));
        assert_eq!(said, "to pay: here is not a purse. Make one with: walras pay new --purse here");
        let other = advised(anyhow::anyhow!("another error").context("context"));
        assert_eq!(format!("{other:#}"), "context: another error");
        let halted = advised(PurseError::Halted.into());
        assert_eq!(halted.to_string(), "the lane is halted: nothing was sent. Try again later");
    }
}
