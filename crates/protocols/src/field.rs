//! Fields of fixed width, big endian.

/// A value of fixed width.
pub(crate) trait Field: Sized {
    /// Its width in bytes.
    const WIDTH: usize;

    /// The value at the start of `bytes`, which are at least as many as its width.
    fn get(bytes: &[u8]) -> Self;

    /// Appends the value.
    fn put(&self, to: &mut Vec<u8>);
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Field for $integer {
            const WIDTH: usize = size_of::<$integer>();

            fn get(bytes: &[u8]) -> $integer {
                bytes[..Self::WIDTH].iter().fold(0, |value: $integer, byte| {
                    value.checked_shl(8).unwrap_or(0) | <$integer>::from(*byte)
                })
            }

            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

impl Field for i32 {
    const WIDTH: usize = u32::WIDTH;

    fn get(bytes: &[u8]) -> i32 {
        u32::get(bytes).cast_signed()
    }

    fn put(&self, to: &mut Vec<u8>) {
        self.cast_unsigned().put(to);
    }
}

impl<const N: usize> Field for [u8; N] {
    const WIDTH: usize = N;

    fn get(bytes: &[u8]) -> [u8; N] {
        std::array::from_fn(|at| bytes[at])
    }

    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }
}

/// Takes the next field of `bytes`.
pub(crate) fn take<T: Field>(bytes: &mut &[u8]) -> T {
    let value = T::get(bytes);
    *bytes = &bytes[T::WIDTH..];
    value
}
