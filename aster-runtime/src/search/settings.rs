//! The numbers of the ranking: what each is for, and 0 to do without.

/// What the rules of [`Lexical`](super::Lexical) count. A part whose number is 0 does nothing.
///
/// What is below 0 or no number counts as 0, and what is above 100 as 100; of `length` and `says` the most is 1, and of
/// `saturation` 6.
///
/// The defaults were chosen on the training third of public queries; `docs/search.md` says what each brings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The fields: server, name, description, parameter names, their descriptions, their values, the server's
    /// description.
    pub fields: [f32; 7],
    /// How much a text that is longer than usual loses in its field; 1 is in full.
    pub length: f32,
    /// How soon another occurrence of a word counts for nothing.
    pub saturation: f32,
    /// Whether words are reduced to their stems.
    pub stems: bool,
    /// Whether words that say nothing are left out.
    pub stop_words: bool,
    /// How far what a word says of what texts are about, as the table has it, counts beside how rare it is.
    pub says: f32,
    /// How much a word with the same meaning counts, as a share of what the table says.
    pub synonyms: f32,
    /// How much a word of a near meaning counts, as a share of what the table says.
    pub neighbours: f32,
    /// How much a word counts that is two of the query in one.
    pub joined: f32,
    /// How much a part of an unknown word counts.
    pub split: f32,
    /// How much a longer word counts that an unknown one begins.
    pub prefix: f32,
    /// How much a word counts that an unknown one is a misspelling of: by one slip.
    pub typo: f32,
    /// How much a tool gains whose name the query says in full.
    pub name_coverage: f32,
    /// How much a tool gains that says all of the query.
    pub query_coverage: f32,
    /// How much "url" counts that an address in a query stands for besides, and "file" that a path does.
    pub clues: f32,
    /// Whether a query that is a tool's name puts it first.
    pub exact_names: bool,
    /// How much the likeness of meaning counts beside the words.
    pub meaning: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fields: [0.7, 3.0, 1.0, 0.9, 0.25, 0.6, 0.0],
            length: 0.75,
            saturation: 1.8,
            stems: true,
            stop_words: true,
            says: 1.0,
            synonyms: 1.0,
            neighbours: 1.0,
            joined: 1.3,
            split: 0.5,
            prefix: 0.5,
            typo: 0.6,
            name_coverage: 0.25,
            query_coverage: 0.5,
            clues: 1.0,
            exact_names: true,
            meaning: 0.2,
        }
    }
}

impl Settings {
    /// These with every number where it may be: scores are then finite, and grow with what goes into them.
    pub(super) fn bounded(self) -> Self {
        let up_to = |most: f32| move |number: f32| if number > 0.0 { number.min(most) } else { 0.0 };
        let (share, any) = (up_to(1.0), up_to(100.0));
        Self {
            fields: self.fields.map(any),
            length: share(self.length),
            // What a word says is at most one more than this, and is stored up to 8.
            saturation: up_to(6.0)(self.saturation),
            stems: self.stems,
            stop_words: self.stop_words,
            says: share(self.says),
            synonyms: any(self.synonyms),
            neighbours: any(self.neighbours),
            joined: any(self.joined),
            split: any(self.split),
            prefix: any(self.prefix),
            typo: any(self.typo),
            name_coverage: any(self.name_coverage),
            query_coverage: any(self.query_coverage),
            clues: any(self.clues),
            exact_names: self.exact_names,
            meaning: any(self.meaning),
        }
    }
}
