//! Files of messages, each after its length in two bytes (NASDAQ BinaryFILE 1.00). A length of zero ends a session; a
//! file may hold several.

/// A file ends within a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file ends within a message: {has} of its {needs} bytes are there")]
pub struct CutFrame {
    /// Bytes of the message that are there, with its length.
    pub has: usize,
    /// Bytes that it needs.
    pub needs: usize,
}

/// What bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFrame<'a> {
    /// A message, and the bytes after it.
    Message(&'a [u8], &'a [u8]),
    /// The end of a session, and the bytes after it: none, or another session.
    End(&'a [u8]),
}

/// What `bytes` begin with; `None` if there are none.
///
/// # Errors
/// [`CutFrame`] if the bytes end within a message.
pub fn first_frame(bytes: &[u8]) -> Result<Option<FileFrame<'_>>, CutFrame> {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        return if bytes.is_empty() { Ok(None) } else { Err(CutFrame { has: bytes.len(), needs: 2 }) };
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 {
        return Ok(Some(FileFrame::End(rest)));
    }
    let (message, rest) = rest.split_at_checked(length).ok_or(CutFrame { has: bytes.len(), needs: 2 + length })?;
    Ok(Some(FileFrame::Message(message, rest)))
}

/// Appends `message` and its length; false, and nothing, if it is longer than 65,535 bytes or empty.
pub fn put_frame(message: &[u8], to: &mut Vec<u8>) -> bool {
    let Some(length) = u16::try_from(message.len()).ok().filter(|length| *length > 0) else { return false };
    to.extend_from_slice(&length.to_be_bytes());
    to.extend_from_slice(message);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_written_and_a_cut_one_is_named() {
        let mut bytes = Vec::new();
        assert!(put_frame(b"one", &mut bytes) && put_frame(b"x", &mut bytes));
        assert_eq!(first_frame(&bytes), Ok(Some(FileFrame::Message(b"one", &bytes[5..]))));
        assert_eq!(first_frame(&bytes[5..]), Ok(Some(FileFrame::Message(b"x", &[]))));
        assert_eq!(first_frame(&[]), Ok(None));
        assert_eq!(first_frame(&bytes[..4]), Err(CutFrame { has: 4, needs: 5 }));
        assert_eq!(first_frame(&bytes[..1]), Err(CutFrame { has: 1, needs: 2 }));
        assert_eq!(first_frame(&[0, 0, 9]), Ok(Some(FileFrame::End(&[9]))));
        assert!(!put_frame(&[], &mut bytes) && !put_frame(&vec![0; 65_536], &mut bytes));
    }
}
