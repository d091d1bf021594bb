//! The operator of continuous markets.
mod checked;
mod error;
mod facts;
mod input;
mod machine;
mod mistake;
mod record;
mod refusal;
mod report;
mod root;
mod settings;
mod state;

pub use checked::{CheckedOrder, check_orders};
pub use error::VenueRootError;
pub use facts::{CertifiedFacts, FillBust, FillFate, KeyStanding, OperatorStanding, VenueFact, VenueStanding};
pub use input::{SessionNumber, Steering, TradeCommand, VenueInput};
pub use mistake::VenueMistake;
pub use refusal::{OrderEnd, OrderRefusal, VenuePause, VenueStop};
pub use report::{
    Acceptance, Execution, FillParty, MarketEvent, OrderStanding, ReportKind, TradeReport, VenueEffect, VenueFill,
};
pub use root::{VenueKeys, VenueOptions, VenueRoot};
pub use settings::{MarketSettings, SettlingTerms, VenueLimits, VenueSettings, VenueSettingsError};
