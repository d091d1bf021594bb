/// The number that an account gives to a transaction; each is used once (rule 4).
pub type Sequence = u64;
