//! What is made from the list of places: their state, tries, changes, edits, sums and readers.

macro_rules! places {
    ($($(#[$when:meta])? $place:ident $Edit:ident: $Type:ty,)*) => {
        /// The state of all places.
        #[derive(Clone)]
        pub(crate) struct Places { $($(#[$when])? pub $place: $Type,)* }

        /// The tries of all places.
        #[derive(Clone, Default)]
        pub(crate) struct PlaceTries { $($(#[$when])? pub $place: <$Type as Custody>::Tries,)* }

        /// What a block changed in all places.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct PlaceChanges { $($(#[$when])? pub $place: <$Type as Custody>::Change,)* }

        /// Changes of what the places hold.
        #[derive(Default)]
        pub(crate) struct PlaceSums {
            $($(#[$when])? pub $place: Sums,)*
            /// What all places hold as bonds.
            pub bonds: Sums,
        }

        /// What an operation does to a place.
        #[derive(Clone, Copy, Debug)]
        #[allow(dead_code, reason = "no native operation edits balances, offers or contracts this way")]
        pub(crate) enum PlaceEdit<'a> { $($(#[$when])? $Edit(<$Type as Custody>::Edit<'a>),)* }

        /// What the operations of a block do to the places, each with its sender.
        #[derive(Default)]
        pub(crate) struct PlaceEdits<'a> { $($(#[$when])? pub $place: Vec<(Address, <$Type as Custody>::Edit<'a>)>,)* }

        /// Readers of the chunks of all places.
        #[derive(Default)]
        pub(crate) struct PlaceReaders { $($(#[$when])? $place: <$Type as Custody>::Reader,)* }

        /// Their tags, and those of head and end of a snapshot.
        const TAGS: &[u8] = &[CHAIN, $($(#[$when])? <$Type>::TAG,)* END];
        const _: () = assert!(rise(TAGS), "tags rise from place to place");

        impl<'a> PlaceEdits<'a> {
            pub(crate) fn push(&mut self, sender: Address, edit: PlaceEdit<'a>) {
                match edit { $($(#[$when])? PlaceEdit::$Edit(edit) => self.$place.push((sender, edit)),)* }
            }

            pub(crate) fn append(&mut self, mut others: PlaceEdits<'a>) {
                $($(#[$when])? self.$place.append(&mut others.$place);)*
            }
        }

        impl PlaceSums {
            /// The sums by name of the place.
            pub(crate) fn named(&self) -> Vec<(&'static str, &Sums)> {
                vec![$($(#[$when])? (<$Type>::NAME, &self.$place),)* (BONDS, &self.bonds)]
            }
        }

        impl Places {
            /// The places at the genesis, whose digest is `last_block`.
            pub(crate) fn found(genesis: &Genesis, last_block: Digest) -> Places {
                Places { $($(#[$when])? $place: <$Type as Custody>::found(genesis, last_block),)* }
            }

            /// The sections of a genesis by tag.
            pub(crate) fn sections(genesis: &Genesis) -> Vec<(u8, Vec<u8>)> {
                let mut sections = Vec::new();
                $($(#[$when])? sections.extend(<$Type>::section(genesis).map(|bytes| (<$Type>::TAG, bytes)));)*
                sections
            }

            /// The first fault of a section of a genesis.
            pub(crate) fn genesis_fault(genesis: &Genesis) -> Option<GenesisError> {
                $($(#[$when])? if let Some(fault) = <$Type>::genesis_fault(genesis) { return Some(fault) })*
                None
            }

            /// Units that the places hold at the genesis.
            pub(crate) fn units(genesis: &Genesis) -> impl Iterator<Item = (Address, AssetId, Amount)> + '_ {
                let all = vec![$($(#[$when])? <$Type>::units(genesis),)*];
                all.into_iter().flatten()
            }

            /// Checks an operation against the state before a block.
            pub(crate) fn check(&self, rules: &Rules, sender: Address, edit: PlaceEdit<'_>) -> Result<(), Refusal> {
                match edit {
                    $($(#[$when])? PlaceEdit::$Edit(edit) => Custody::check(&self.$place, rules, sender, edit),)*
                }
            }

            /// Applies a block's accepted operations, place by place.
            pub(crate) fn apply(&mut self, turn: &mut Turn<'_>, edits: &PlaceEdits<'_>) -> Kept {
                let mut kept = Kept::default();
                $($(#[$when])? {
                    let Moved { credits, burnt, held, bonds, change } =
                        Custody::apply(&mut self.$place, turn, &edits.$place);
                    kept.credits.extend(credits);
                    kept.burnt += burnt;
                    kept.held.bonds.merge(&bonds);
                    (kept.held.$place, kept.changes.$place) = (held, change);
                })*
                kept
            }

            /// All places, as input for empty tries.
            pub(crate) fn whole(&self) -> PlaceChanges {
                PlaceChanges { $($(#[$when])? $place: Custody::whole(&self.$place),)* }
            }

            /// The chunks of all places, each behind its tag.
            pub(crate) fn chunks(&self) -> impl Iterator<Item = Vec<u8>> + Send + '_ {
                let all = vec![$($(#[$when])? Custody::chunks(&self.$place),)*];
                all.into_iter().flatten()
            }

            /// Entries in the chunks of each place that has any, by tag.
            pub(crate) fn entries(&self) -> Vec<(u8, u64)> {
                let mut all = vec![$($(#[$when])? (<$Type>::TAG, Custody::entries(&self.$place)),)*];
                all.retain(|(_, entries)| *entries > 0);
                all
            }

            /// Units that each place holds, by asset.
            pub(crate) fn held(&self, audited: &Audited<'_>) -> Result<Vec<(&'static str, Vec<u128>)>, AuditError> {
                let mut bonds = audited.zero();
                $($(#[$when])? {
                    let of_place = Custody::bonds(&self.$place, audited);
                    bonds.iter_mut().zip(of_place).for_each(|(sum, more)| *sum += more);
                })*
                Ok(vec![$($(#[$when])? (<$Type>::NAME, Custody::held(&self.$place, audited)?),)* (BONDS, bonds)])
            }
        }

        impl PlaceTries {
            /// Applies what a block changed.
            pub(crate) fn apply(&mut self, changes: &PlaceChanges) {
                $($(#[$when])? <$Type>::follow(&mut self.$place, &changes.$place);)*
            }

            /// The root parts of the places that the chain has, by tag.
            pub(crate) fn parts(&mut self) -> Vec<RootPart> {
                let mut parts = Vec::new();
                $($(#[$when])? {
                    let root = <$Type>::part(&mut self.$place);
                    parts.extend(root.map(|root| RootPart { tag: <$Type>::TAG, root }));
                })*
                parts
            }
        }

        impl PlaceReaders {
            /// Reads the next chunk of the place with this tag.
            pub(crate) fn push(&mut self, tag: u8, bytes: &[u8]) -> Result<(), ChunkFault> {
                match tag {
                    $($(#[$when])? tag if tag == <$Type>::TAG => self.$place.push(bytes),)*
                    _ => Err(ChunkFault::OutOfPlace),
                }
            }

            /// Entries read of each place that has any, by tag.
            pub(crate) fn entries(&self) -> Vec<(u8, u64)> {
                let mut all = vec![$($(#[$when])? (<$Type>::TAG, self.$place.entries()),)*];
                all.retain(|(_, entries)| *entries > 0);
                all
            }

            /// The places, after their last chunks.
            pub(crate) fn finish(self, chain: &Restored) -> Result<Places, AuditError> {
                Ok(Places { $($(#[$when])? $place: self.$place.finish(chain)?,)* })
            }
        }
    };
}

pub(super) use places;
