//! Receipts as QR codes in a terminal.

use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// A QR code for the terminal; `None` if the text is too long for one.
pub fn qr(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    // Dark on light, even in a dark terminal.
    let (dark, light) = (Dense1x2::Light, Dense1x2::Dark);
    Some(code.render::<Dense1x2>().dark_color(dark).light_color(light).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_fits_into_a_code_of_a_terminal_and_a_long_text_into_none() {
        let receipt = format!("WALRAS:{}", "0123456789ABCDEF".repeat(60));
        let drawn = qr(&receipt).expect("it fits");
        assert!(drawn.lines().count() > 20 && drawn.lines().all(|line| line.chars().count() < 140));
        assert_eq!(qr(&"A".repeat(5_000)), None);
    }
}
