//! Which language a text is in, as far as stemming needs to know, and its words for nothing.

use std::collections::HashMap;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};

use super::tokens::without_accents;

/// A language whose words are stemmed by its own rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Language {
    English,
    German,
    French,
    Spanish,
    Portuguese,
    Italian,
    Dutch,
    Turkish,
    Russian,
}

use Language::{Dutch, English, French, German, Italian, Portuguese, Russian, Spanish, Turkish};

/// What is longer, in bytes, is no word that has endings: to look for them again and again would take the square of its length.
const MAX_STEMMED: usize = 64;

impl Language {
    /// All but English, in which everything is looked up first.
    pub(super) const FOREIGN: [Self; 8] =
        [German, French, Spanish, Portuguese, Italian, Dutch, Turkish, Russian];

    fn stemmer(self) -> Stemmer {
        Stemmer::new(match self {
            English => Algorithm::English,
            German => Algorithm::German,
            French => Algorithm::French,
            Spanish => Algorithm::Spanish,
            Portuguese => Algorithm::Portuguese,
            Italian => Algorithm::Italian,
            Dutch => Algorithm::Dutch,
            Turkish => Algorithm::Turkish,
            Russian => Algorithm::Russian,
        })
    }

    /// The stem of a lower-case word, without accents. Porter2 for English; what has digits in it stays, and what is too long
    /// for a word loses its accents alone.
    pub(super) fn stem(self, word: &str) -> String {
        if word.len() < 3 || word.bytes().any(|b| b.is_ascii_digit()) {
            return word.to_owned();
        }
        let stem = match self {
            _ if word.len() > MAX_STEMMED => word.to_owned(),
            Turkish => turkish_stem(word),
            _ => self.stemmer().stem(word).into_owned(),
        };
        match without_accents(&stem) {
            std::borrow::Cow::Borrowed(_) => stem,
            std::borrow::Cow::Owned(plain) => plain,
        }
    }

    pub(super) const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Snowball's stemmer knows the endings of Turkish nouns. Those of verbs are ours, without which an order does not find what
/// says that it does it: "çevir" is "translate", and "çevirir" is "translates".
const TURKISH_VERB_ENDINGS: [&str; 8] = ["ıyor", "iyor", "uyor", "üyor", "mak", "mek", "ma", "me"];

/// Strips endings until none is left, or what one form has lost another keeps: "araba" would be "arap", and "arabayla"
/// "araba". Three letters stay: of "oda" an "o" would.
fn turkish_stem(word: &str) -> String {
    let snowball = Turkish.stemmer();
    let is_stem = |stem: &str| stem.chars().nth(2).is_some();
    let mut stem = word.to_owned();
    loop {
        let noun = snowball.stem(&stem);
        let shorter = if noun.len() < stem.len() && is_stem(&noun) { &*noun } else { verb(&stem) };
        if shorter.len() == stem.len() || !is_stem(shorter) {
            return stem;
        }
        stem = shorter.to_owned();
    }
}

/// A Turkish verb without its ending, if it has one.
fn verb(word: &str) -> &str {
    let rest = TURKISH_VERB_ENDINGS.iter().find_map(|ending| word.strip_suffix(ending));
    let present =
        || word.strip_suffix('r').filter(|rest| rest.ends_with(['a', 'e', 'ı', 'i', 'o', 'ö', 'u', 'ü']));
    rest.or_else(present).unwrap_or(word)
}

/// The words of each language that say nothing of what a text is about.
const FUNCTION_WORDS: [(Language, &str); 9] = [
    (
        English,
        "a about above after again all also am an and any are as at be been before being but by can could did do does \
         doing for from had has have having he her here him his how i if in into is it its just may me might more most \
         must my no nor not of on only or our ours out over own please she should so some such than that the their them \
         then there these they this those through to too under up upon us very was we were what when where which while \
         who whom whose why will with would you your yours s t re ve ll d m",
    ),
    (
        German,
        "der die das den dem des ein eine einen einem einer und oder aber mit von zu zum zur auf aus bei nach über unter \
         für ist sind wird werden nicht auch sich ich du er sie es wir ihr mein meine im am als wie was wo wenn dass alle",
    ),
    (
        French,
        "le la les un une des du de et ou mais avec pour par sur dans sous au aux ce cette ces est sont être ne pas plus \
         que qui quoi où je tu il elle nous vous ils mon ma mes son sa ses leur leurs tous toutes",
    ),
    (
        Spanish,
        "el la los las un una unos unas y o pero con para por sobre en de del al es son ser no más que quien donde como \
         yo tú él ella nosotros mi mis su sus este esta estos estas todos todas lo se",
    ),
    (
        Portuguese,
        "o a os as um uma uns umas e ou mas com para por sobre em de do da dos das no na nos nas ao aos é são ser não \
         mais que quem onde como eu você ele ela nós meu minha meus minhas seu sua seus suas este esta todos todas",
    ),
    (
        Italian,
        "il lo la i gli le un uno una e o ma con per su in di del della dei delle al alla ai è sono essere non più che \
         chi dove come io tu lui lei noi mio mia miei suo sua questo questa tutti tutte da nel nella",
    ),
    (
        Dutch,
        "de het een en of maar met van voor naar op uit bij over onder in is zijn wordt worden niet ook zich ik je jij hij \
         zij wij mijn uw dit dat deze die alle als wat waar wie te om",
    ),
    (
        Turkish,
        "ve veya ile için bir bu şu o da de mi mı ne nasıl var yok olan olarak gibi daha en çok benim bana beni sen ben biz \
         tüm her",
    ),
    (
        Russian,
        "и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще \
         нет о из ему для мой или этот эта эти при до",
    ),
];

static LANGUAGES_OF: LazyLock<HashMap<&'static str, u16>> = LazyLock::new(|| {
    let mut languages: HashMap<&str, u16> = HashMap::new();
    for (language, words) in FUNCTION_WORDS {
        for word in words.split_ascii_whitespace() {
            *languages.entry(word).or_default() |= language.bit();
        }
    }
    languages
});

/// The languages in which a word says nothing, for [`is_stop`] and [`Guess`].
pub(super) fn function_word(word: &str) -> u16 {
    LANGUAGES_OF.get(word).copied().unwrap_or_default()
}

/// Whether a word is left out of a text in this language. English ones are left out everywhere: identifiers and
/// descriptions mix.
pub(super) fn is_stop(function_word: u16, language: Language) -> bool {
    function_word & (English.bit() | language.bit()) != 0
}

/// Counts evidence for the language of a text, word by word.
#[derive(Default)]
pub(super) struct Guess {
    counts: [u32; 9],
}

impl Guess {
    pub(super) fn see(&mut self, word: &str, function_word: u16) {
        for (language, count) in self.counts.iter_mut().enumerate() {
            *count = count.saturating_add(u32::from(function_word >> language & 1));
        }
        if !word.is_ascii() {
            for c in word.chars() {
                let language = match c {
                    'ß' => German,
                    'ğ' | 'ı' | 'ş' => Turkish,
                    'ñ' | '¿' => Spanish,
                    'ã' | 'õ' => Portuguese,
                    'œ' | 'è' | 'ê' => French,
                    'а'..='я' | 'ё' => Russian,
                    _ => continue,
                };
                let count = &mut self.counts[language as usize];
                *count = count.saturating_add(2);
            }
        }
    }

    /// The language with the most evidence; English unless another has clearly more.
    pub(super) fn language(&self) -> Language {
        let english = self.counts[English as usize];
        let best = Language::FOREIGN.into_iter().rev().max_by_key(|&language| self.counts[language as usize]);
        best.filter(|&best| self.counts[best as usize] > english.max(1)).unwrap_or(English)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::words;
    use super::*;

    fn guess(text: &str) -> Language {
        let mut guess = Guess::default();
        words(text, &mut |word| guess.see(word, function_word(word)));
        guess.language()
    }

    #[test]
    fn languages_are_told_by_their_small_words_and_letters() {
        assert_eq!(guess("Lists the files in a folder."), English);
        assert_eq!(guess("list de files"), English);
        assert_eq!(guess("Zeigt die Dateien in einem Ordner"), German);
        assert_eq!(guess("Muestra los archivos de una carpeta"), Spanish);
        assert_eq!(guess("Kur'an sayfasını göster"), Turkish);
        assert_eq!(guess("Показать файлы"), Russian);
        assert_eq!(guess("搜索网页"), English);
    }

    #[test]
    fn each_language_has_its_stems() {
        assert_eq!(English.stem("repositories"), English.stem("repository"));
        assert_eq!(Turkish.stem("dosyaları"), Turkish.stem("dosyalar"));
        for (order, says_it) in [
            ("çevir", "çevirir"),
            ("değiştir", "değiştirir"),
            ("gönder", "gönderiyor"),
            ("araba", "arabayla"),
        ] {
            assert_eq!(Turkish.stem(order), Turkish.stem(says_it));
        }
        assert_eq!(Spanish.stem("canciones"), Spanish.stem("canción"));
        assert_eq!(English.stem("sha256s"), "sha256s");
    }

    #[test]
    fn what_is_too_long_for_a_word_keeps_its_endings() {
        for language in Language::FOREIGN.into_iter().chain([English]) {
            let long = format!("zebra{}s", "ma".repeat(40));
            assert_eq!(language.stem(&long), long, "{language:?}");
        }
        assert_eq!(Turkish.stem(&format!("ş{}", "ma".repeat(40))), format!("s{}", "ma".repeat(40)));
    }
}
