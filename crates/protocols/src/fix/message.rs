//! The messages.

use super::FixError;
use super::frame::{FixField, FixFields, framed, put};
use super::value::{FixData, FixDecimal, FixText, FixTime};

macro_rules! bodies {
    ($vis:vis $all:ident; $(
        $(#[doc = $doc:literal])*
        $variant:ident($name:ident) = $kind:literal {
            $($(#[doc = $field_doc:literal])* $field:ident: $of:ty = $tag:literal,)*
        }
    )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            $vis struct $name { $($(#[doc = $field_doc])* pub $field: $of,)* }

            impl From<$name> for $all {
                fn from(body: $name) -> $all {
                    $all::$variant(body)
                }
            }
        )*

        /// What a message says.
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis enum $all { $($(#[doc = $doc])* $variant($name),)* }

        impl $all {
            /// The kind, tag 35.
            pub fn kind(&self) -> &'static str {
                match self { $($all::$variant(_) => $kind,)* }
            }

            fn take(fields: &mut FixFields) -> Result<$all, FixError> {
                match &fields.kind[..] {
                    $($kind => Ok($all::$variant($name { $($field: FixField::take($tag, fields)?,)* })),)*
                    _ => Err(FixError::Kind { kind: fields.kind.clone() }),
                }
            }

            fn put_fields(&self, to: &mut Vec<u8>) {
                match self { $($all::$variant($name { $($field,)* }) => { $($field.put_field($tag, to);)* })* }
            }
        }
    };
}

bodies! {
    pub FixBody;

    /// The sender is there.
    Heartbeat(FixHeartbeat) = "0" {
        /// The test request that it answers.
        test: Option<FixText> = 112,
    }
    /// A heartbeat is to come.
    TestRequest(FixTestRequest) = "1" {
        /// What the heartbeat repeats.
        test: FixText = 112,
    }
    /// Messages are to be sent again.
    ResendRequest(FixResendRequest) = "2" {
        /// From this number on.
        begin: u64 = 7,
        /// Up to this one; zero is all.
        end: u64 = 16,
    }
    /// A message breaks a rule of the session; it counts as received.
    Reject(FixReject) = "3" {
        /// Its number.
        number: u64 = 45,
        /// The tag that is wrong.
        tag: Option<u32> = 371,
        /// Its kind.
        kind: Option<FixText> = 372,
        /// Why, a number of the specification.
        reason: Option<u32> = 373,
        /// Why, in words.
        text: Option<FixText> = 58,
    }
    /// Numbers are skipped: those of messages that are not sent again, or, without gap fill, any.
    SequenceReset(FixSequenceReset) = "4" {
        /// Whether it is a gap fill, which has a number of its own.
        is_gap_fill: Option<bool> = 123,
        /// The number of the next message.
        next: u64 = 36,
    }
    /// The session of this connection ends.
    Logout(FixLogout) = "5" {
        /// Why.
        text: Option<FixText> = 58,
    }
    /// What became of an order.
    Execution(FixExecution) = "8" {
        /// The venue's number of the order.
        order: FixText = 37,
        /// The participant's own.
        client_order: Option<FixText> = 11,
        /// That of the order before, of a replaced or cancelled one.
        original: Option<FixText> = 41,
        /// The number of this report, unique on its day.
        execution: FixText = 17,
        /// The report that it corrects.
        corrects: Option<FixText> = 19,
        /// `0` new, `4` cancelled, `5` replaced, `8` rejected, `C` expired, `D` made smaller, `F` a trade, `H` a void
        /// trade, `I` the state.
        exec_type: u8 = 150,
        /// `0` new, `1` partly filled, `2` filled, `4` cancelled, `5` replaced, `8` rejected, `C` expired.
        status: u8 = 39,
        /// Why it is rejected.
        reason: Option<u32> = 103,
        /// The security.
        symbol: FixText = 55,
        /// `1` buys, `2` sells, `5` sells short, `6` sells short exempt.
        side: u8 = 54,
        /// The size of the order.
        quantity: Option<FixDecimal> = 38,
        /// Its limit.
        price: Option<FixDecimal> = 44,
        /// Its time in force.
        time_in_force: Option<u8> = 59,
        /// The size of this trade.
        last_quantity: Option<FixDecimal> = 32,
        /// Its price.
        last_price: Option<FixDecimal> = 31,
        /// What is left of the order.
        left: FixDecimal = 151,
        /// What has traded of it.
        filled: FixDecimal = 14,
        /// At this price on average.
        average: FixDecimal = 6,
        /// When.
        time: Option<FixTime> = 60,
        /// Why, in words.
        text: Option<FixText> = 58,
    }
    /// A cancel or a replacement is refused.
    CancelReject(FixCancelReject) = "9" {
        /// The venue's number of the order, or `NONE`.
        order: FixText = 37,
        /// The request.
        client_order: FixText = 11,
        /// The order that it was for.
        original: FixText = 41,
        /// The state of that order.
        status: u8 = 39,
        /// `1` a cancel, `2` a replacement.
        response_to: u8 = 434,
        /// Why: `0` too late, `1` unknown order, `3` one is pending, and others.
        reason: Option<u32> = 102,
        /// Why, in words.
        text: Option<FixText> = 58,
    }
    /// A connection begins.
    Logon(FixLogon) = "A" {
        /// Zero: nothing is encrypted.
        encryption: u32 = 98,
        /// Seconds between heartbeats.
        heartbeat_s: u32 = 108,
        /// Anything.
        data: Option<FixData> = 95,
        /// Whether both sides are to begin at one.
        is_reset: Option<bool> = 141,
        /// The name.
        username: Option<FixText> = 553,
        /// The password.
        password: Option<FixText> = 554,
    }
    /// A new order.
    NewOrder(FixNewOrder) = "D" {
        /// The participant's own number, unique on its day.
        client_order: FixText = 11,
        /// The account.
        account: Option<FixText> = 1,
        /// Letters, spaces between: `6` never takes, and others.
        instructions: Option<FixText> = 18,
        /// The security.
        symbol: FixText = 55,
        /// `1` buys, `2` sells, `5` sells short, `6` sells short exempt.
        side: u8 = 54,
        /// When it was made.
        time: FixTime = 60,
        /// Its size.
        quantity: FixDecimal = 38,
        /// `1` market, `2` limit.
        order_type: u8 = 40,
        /// Its limit.
        price: Option<FixDecimal> = 44,
        /// `0` this day, `1` until cancelled, `3` immediate or cancel, `4` fill or kill; absent is this day.
        time_in_force: Option<u8> = 59,
        /// The least size of a trade.
        least_quantity: Option<FixDecimal> = 110,
        /// The most that is displayed.
        displayed_most: Option<FixDecimal> = 111,
        /// Anything.
        text: Option<FixText> = 58,
    }
    /// An order is to be cancelled.
    CancelRequest(FixCancelRequest) = "F" {
        /// The order, by the participant's own number.
        original: FixText = 41,
        /// The request's own number.
        client_order: FixText = 11,
        /// The order, by the venue's number.
        order: Option<FixText> = 37,
        /// The security.
        symbol: FixText = 55,
        /// The side.
        side: u8 = 54,
        /// When.
        time: FixTime = 60,
        /// The size of the order.
        quantity: Option<FixDecimal> = 38,
    }
    /// An order is to be replaced.
    ReplaceRequest(FixReplaceRequest) = "G" {
        /// The order, by the participant's own number.
        original: FixText = 41,
        /// That of the order in its place.
        client_order: FixText = 11,
        /// The order, by the venue's number.
        order: Option<FixText> = 37,
        /// Letters as of a new order.
        instructions: Option<FixText> = 18,
        /// The security.
        symbol: FixText = 55,
        /// The side.
        side: u8 = 54,
        /// When.
        time: FixTime = 60,
        /// Its *total* size from now on: what has traded counts.
        quantity: FixDecimal = 38,
        /// `1` market, `2` limit.
        order_type: u8 = 40,
        /// Its limit.
        price: Option<FixDecimal> = 44,
        /// As of a new order.
        time_in_force: Option<u8> = 59,
    }
    /// The state of an order is to be reported.
    StatusRequest(FixStatusRequest) = "H" {
        /// The order, by the venue's number.
        order: Option<FixText> = 37,
        /// The order, by the participant's own number.
        client_order: FixText = 11,
        /// The security.
        symbol: FixText = 55,
        /// The side.
        side: u8 = 54,
    }
    /// A message is right for the session, and nothing that the venue does.
    BusinessReject(FixBusinessReject) = "j" {
        /// Its number.
        number: Option<u64> = 45,
        /// Its kind.
        kind: FixText = 372,
        /// Its own number, of an order for example.
        reference: Option<FixText> = 379,
        /// `0` other, `2` unknown security, `3` unsupported kind, `4` not available now, and others.
        reason: u32 = 380,
        /// Why, in words.
        text: Option<FixText> = 58,
    }
    /// Many orders are to be cancelled.
    MassCancelRequest(FixMassCancelRequest) = "q" {
        /// The request's own number.
        client_order: FixText = 11,
        /// `1` those of a security, `7` all.
        scope: u8 = 530,
        /// The security.
        symbol: Option<FixText> = 55,
        /// Those of this side alone.
        side: Option<u8> = 54,
        /// When.
        time: FixTime = 60,
    }
    /// Many orders are cancelled, or the request is refused.
    MassCancelReport(FixMassCancelReport) = "r" {
        /// The request.
        client_order: Option<FixText> = 11,
        /// The number of this report.
        order: FixText = 37,
        /// What was asked for.
        scope: u8 = 530,
        /// `0` refused, or what was done, as the scope.
        response: u8 = 531,
        /// Why it is refused.
        reason: Option<u32> = 532,
        /// How many orders are cancelled.
        total: Option<u64> = 533,
        /// Which.
        affected: Vec<FixAffected> = 534,
        /// The security.
        symbol: Option<FixText> = 55,
        /// The side.
        side: Option<u8> = 54,
        /// Why, in words.
        text: Option<FixText> = 58,
    }
}

/// An order that a mass cancel cancels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixAffected {
    /// The participant's own number.
    pub original: FixText,
    /// The venue's.
    pub order: Option<FixText>,
}

impl FixField for Vec<FixAffected> {
    fn take(tag: u32, fields: &mut FixFields) -> Result<Vec<FixAffected>, FixError> {
        let groups = fields.group(tag, 41, &[535, 536])?;
        let affected = |mut fields: FixFields| {
            let original = FixField::take(41, &mut fields)?;
            Ok(FixAffected { original, order: FixField::take(535, &mut fields)? })
        };
        groups.into_iter().map(affected).collect()
    }

    fn put_field(&self, tag: u32, to: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        put(tag, &(self.len() as u64), to);
        for FixAffected { original, order } in self {
            original.put_field(41, to);
            order.put_field(535, to);
        }
    }
}

impl FixBody {
    /// Whether it concerns the session alone: it is not sent again.
    pub fn is_of_session(&self) -> bool {
        matches!(self.kind(), "0" | "1" | "2" | "3" | "4" | "5" | "A")
    }

    /// The kind and the fields, as a journal keeps them.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put_fields(&mut bytes);
        bytes
    }
}

/// The fields before the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixHeader {
    /// Who sends.
    pub sender: FixText,
    /// To whom.
    pub target: FixText,
    /// The number of the message.
    pub number: u64,
    /// Whether it may have been sent before, under this number.
    pub is_possible_duplicate: Option<bool>,
    /// Whether it may have been sent before, under another number.
    pub is_possible_resend: Option<bool>,
    /// When it is sent.
    pub sent: FixTime,
    /// When it was sent for the first time.
    pub first_sent: Option<FixTime>,
}

impl FixHeader {
    fn take(fields: &mut FixFields) -> Result<FixHeader, FixError> {
        Ok(FixHeader {
            sender: FixField::take(49, fields)?,
            target: FixField::take(56, fields)?,
            number: FixField::take(34, fields)?,
            is_possible_duplicate: FixField::take(43, fields)?,
            is_possible_resend: FixField::take(97, fields)?,
            sent: FixField::take(52, fields)?,
            first_sent: FixField::take(122, fields)?,
        })
    }

    /// The whole message with the fields `body`.
    pub(super) fn message(&self, kind: &str, body: &[u8]) -> Vec<u8> {
        let mut to = format!("35={kind}\u{1}").into_bytes();
        self.sender.put_field(49, &mut to);
        self.target.put_field(56, &mut to);
        self.number.put_field(34, &mut to);
        self.is_possible_duplicate.put_field(43, &mut to);
        self.is_possible_resend.put_field(97, &mut to);
        self.sent.put_field(52, &mut to);
        self.first_sent.put_field(122, &mut to);
        to.extend_from_slice(body);
        framed(&to)
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixMessage {
    /// The fields before the body.
    pub header: FixHeader,
    /// The contents.
    pub body: FixBody,
}

/// A header, and a body or what is wrong with it and its kind.
pub(super) type HeaderAndBody = (FixHeader, Result<FixBody, (FixError, String)>);

impl FixMessage {
    /// The message that a reader handed out.
    ///
    /// # Errors
    /// [`FixError`] if it is none.
    pub fn decode(bytes: &[u8]) -> Result<FixMessage, FixError> {
        let (header, body) = FixMessage::split(bytes)?;
        Ok(FixMessage { header, body: body.map_err(|(error, _)| error)? })
    }

    /// The bytes of the message, as they are sent.
    pub fn encode(&self) -> Vec<u8> {
        self.header.message(self.body.kind(), &self.body.bytes())
    }

    pub(super) fn split(bytes: &[u8]) -> Result<HeaderAndBody, FixError> {
        let mut fields = FixFields::of(bytes)?;
        let fault = fields.fault.take();
        let header = match FixHeader::take(&mut fields) {
            Ok(header) => header,
            Err(error) => return Err(fault.unwrap_or(error)),
        };
        let body = fault.map_or_else(|| FixBody::take(&mut fields), Err);
        Ok((header, body.map_err(|error| (error, fields.kind))))
    }
}
