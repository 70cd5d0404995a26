//! Choices between forms of one computation: the places at which the lowering chooses, the
//! candidates of each place, and demands for one of them.
//!
//! | Place | Target | Candidates |
//! |---|---|---|
//! | `gemm0`, `gemm1`, … | AMD | the [words](gemm::Schedule::word) of schedules, by their estimates |
//! | `rows0`, … | AMD | the [words](rows::Schedule::word) of schedules |
//! | `rows0`, … | CPUs | `kernel`: rotini's; `lanes`: sums in lanes; `iree` |
//! | `conv0`, … | CPUs | `panels`: rotini's kernel; `patches` or `convolution`: another form for IREE; `iree` |
//! | `dgrad0`, `wgrad0`, `product0`, `pool0`, `attention0`, … | CPUs | `kernel`: rotini's; `iree` |
//! | `conv0`, … | other GPUs | `patches`: a matmul of patches; `iree` |
//! | `fusion0` | NVIDIA | `aggressive`: IREE fuses reductions with what they share operands with; `plain` |
//! | `tiling0` | CPUs | `packed`: IREE packs the operands of products into tiles; `plain` |
//!
//! Every candidate is a form that some graph has without a demand. `iree` is IREE's own code for
//! the operation. Whoever measures times decides among candidates; this file only lists them.

use crate::EmitError;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The name that stands for all places in a demand.
const ALL: &str = "all";
/// IREE's own code, as a candidate and as a demand for all places.
const IREE: &str = "iree";
/// The demand for what the lowering chooses by itself.
const USUAL: &str = "usual";
/// The most bytes of a text with demands.
const MOST_BYTES: usize = 1 << 12;

/// Demands for candidates, by the names of places (`gemm0`) or of their kinds (`gemm`).
///
/// As text: `gemm0=128x64_2x2_b1,rows=lanes`; `iree` for IREE's own code wherever that is a
/// candidate; `usual` for no demand at all, which is not the same as an empty text where measured
/// choices would take the place of an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Choices(BTreeMap<String, String>);

/// Why a text is no list of choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no choice: usual, iree, or PLACE=CANDIDATE with commas between several")]
pub struct ChoicesError(String);

impl Choices {
    /// The demand for what the lowering chooses by itself.
    #[must_use]
    pub fn usual() -> Self {
        Choices::of(ALL, USUAL)
    }

    /// The demand for IREE's own code at all places.
    #[must_use]
    pub fn iree() -> Self {
        Choices::of(ALL, IREE)
    }

    /// The demand for a candidate at one place, or at all places of a kind.
    #[must_use]
    pub fn of(place: &str, candidate: &str) -> Self {
        Choices([(place.to_owned(), candidate.to_owned())].into())
    }

    /// Whether nothing is demanded, not even the usual.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a graph is lowered as without demands.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        self.0
            .iter()
            .all(|(place, candidate)| place == ALL && candidate == USUAL)
    }

    /// The demands of both; where both have one for a place, that of `other`.
    #[must_use]
    pub fn with(mut self, other: &Choices) -> Self {
        self.0.extend(other.0.clone());
        self
    }

    /// Reads a text of at most 4096 bytes.
    ///
    /// # Errors
    ///
    /// [`ChoicesError`] with the part that is not understood.
    pub fn parse(text: &str) -> Result<Self, ChoicesError> {
        let refused = |part: &str| ChoicesError(part.chars().take(64).collect());
        if text.len() > MOST_BYTES {
            return Err(refused(text));
        }
        match text {
            "" => return Ok(Choices::default()),
            IREE => return Ok(Choices::iree()),
            USUAL => return Ok(Choices::usual()),
            _ => {}
        }
        let is_name = |text: &str| text.starts_with(|letter: char| letter.is_ascii_lowercase());
        let is_word = |text: &str| {
            let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'#';
            !text.is_empty() && text.bytes().all(is_of_word)
        };
        let mut choices = BTreeMap::new();
        for part in text.split(',') {
            match part.split_once('=') {
                Some((place, candidate)) if is_name(place) && is_word(place) && is_word(candidate) && place != ALL => {
                    if choices.insert(place.to_owned(), candidate.to_owned()).is_some() {
                        return Err(refused(part));
                    }
                }
                _ => return Err(refused(part)),
            }
        }
        Ok(Choices(choices))
    }

    /// The demand for a place, and the name under which it was found.
    fn demand(&self, kind: &str, number: usize) -> Option<(&str, &str)> {
        let found = self.0.get_key_value(&format!("{kind}{number}"));
        let found = found
            .or_else(|| self.0.get_key_value(kind))
            .or_else(|| self.0.get_key_value(ALL));
        found.map(|(name, candidate)| (name.as_str(), candidate.as_str()))
    }

    /// Whether IREE's own code is demanded at all places.
    pub(crate) fn is_iree(&self) -> bool {
        self.0.get(ALL).is_some_and(|candidate| candidate == IREE)
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(word), 1) = (self.0.get(ALL), self.0.len()) {
            return f.write_str(word);
        }
        for (number, (place, candidate)) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{place}={candidate}")?;
        }
        Ok(())
    }
}

/// A form that a place can have.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its id, by which it is demanded.
    pub id: String,
    /// The microseconds that a closed form estimates, if there is one.
    pub estimated_us: Option<f64>,
}

/// A place at which the lowering of a graph chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its kind and its number among the places of that kind, in the order of the lowering.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// The candidates, the best by the estimates first.
    pub candidates: Vec<Candidate>,
    /// The id of what is taken without a demand.
    pub usual: String,
}

/// What there is to choose from at a place, for the lowering.
pub(crate) struct Form<T> {
    id: String,
    form: T,
    estimated_us: Option<f64>,
}

impl<T> Form<T> {
    pub(crate) fn new(id: impl Into<String>, form: T) -> Self {
        Form {
            id: id.into(),
            form,
            estimated_us: None,
        }
    }

    /// Adds the microseconds that a closed form estimates, if there is one.
    pub(crate) fn estimated(self, microseconds: Option<f64>) -> Self {
        Form {
            estimated_us: microseconds,
            ..self
        }
    }
}

/// What takes the choices while a graph is lowered.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    wanted: Choices,
    /// Whether demands that no place takes are ignored: those of a target's name.
    is_lenient: bool,
    /// Whether the places are to be listed.
    lists: bool,
    numbers: RefCell<BTreeMap<&'static str, usize>>,
    places: RefCell<Vec<Place>>,
    met: RefCell<BTreeSet<String>>,
}

impl Chooser {
    /// Creates one for these demands, and for those of the target's name (`tried`) where there are
    /// none.
    pub(crate) fn new(tried: Option<Choices>, choices: &Choices) -> Self {
        let tried = tried.filter(|_| choices.is_empty());
        Chooser {
            is_lenient: tried.is_some(),
            wanted: tried.unwrap_or_else(|| choices.clone()),
            ..Chooser::default()
        }
    }

    /// The same, and the places are listed.
    pub(crate) fn listing(self) -> Self {
        Chooser { lists: true, ..self }
    }

    /// Returns the form of the next place of a kind: the one that is demanded, else the usual one.
    /// A demand `#3` is for the fourth candidate, others for an id of a candidate or for what
    /// `parse` understands.
    pub(crate) fn choose<T: Copy + PartialEq>(
        &self,
        kind: &'static str,
        usual: T,
        forms: impl FnOnce() -> Vec<Form<T>>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let number = {
            let mut numbers = self.numbers.borrow_mut();
            let next = numbers.entry(kind).or_default();
            *next += 1;
            *next - 1
        };
        let demand = self.wanted.demand(kind, number);
        if demand.is_none() && !self.lists {
            return usual;
        }
        let forms = forms();
        let found = demand.and_then(|(name, candidate)| {
            let listed = match candidate.strip_prefix('#') {
                Some(rank) => forms.get(rank.parse::<usize>().ok()?),
                None => forms.iter().find(|form| form.id == candidate),
            };
            let form = listed.map(|form| form.form).or_else(|| parse(candidate))?;
            self.met.borrow_mut().insert(name.to_owned());
            Some(form)
        });
        if self.lists {
            let own = forms.iter().find(|form| form.form == usual);
            let own = own.expect("the usual form is no candidate");
            self.places.borrow_mut().push(Place {
                name: format!("{kind}{number}"),
                kind,
                usual: own.id.clone(),
                candidates: forms
                    .into_iter()
                    .map(|Form { id, estimated_us, .. }| Candidate { id, estimated_us })
                    .collect(),
            });
        }
        found.unwrap_or(usual)
    }

    /// [`choose`](Self::choose) between a kernel of rotini and IREE's own code: whether it is the
    /// kernel.
    pub(crate) fn takes_kernel(&self, kind: &'static str, usual: bool) -> bool {
        let forms = || vec![Form::new("kernel", true), Form::new(IREE, false)];
        self.choose(kind, usual, forms, |_| None)
    }

    /// The places that were met, if they were to be listed.
    pub(crate) fn into_places(self) -> Vec<Place> {
        self.places.into_inner()
    }

    /// Refuses demands that no place took.
    ///
    /// # Errors
    ///
    /// [`EmitError::Choice`] with the first.
    pub(crate) fn expect_met(&self) -> Result<(), EmitError> {
        let met = self.met.borrow();
        let is_unmet = |(name, _): &(&String, &String)| *name != ALL && !met.contains(*name);
        match self.wanted.0.iter().find(is_unmet) {
            Some((place, candidate)) if !self.is_lenient => Err(EmitError::Choice {
                place: place.clone(),
                candidate: candidate.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// Returns all configurations of a graph with these places, in a stable order: the usual one,
/// IREE's own, and each other candidate of each place alone.
#[must_use]
pub fn configurations(places: &[Place]) -> Vec<Choices> {
    let mut all = vec![Choices::usual()];
    if !places.is_empty() {
        all.push(Choices::iree());
    }
    for place in places {
        let others = place.candidates.iter().filter(|candidate| candidate.id != place.usual);
        let mut ids: Vec<&str> = others.map(|candidate| candidate.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        all.extend(ids.into_iter().map(|id| Choices::of(&place.name, id)));
    }
    all
}

/// Returns the microseconds that the closed form estimates for a graph with these choices: the sum
/// over its products, if there is nothing else to choose.
#[must_use]
pub fn estimated_us(places: &[Place], choices: &Choices) -> Option<f64> {
    let one = |place: &Place| {
        let number = place.name.strip_prefix(place.kind)?.parse().ok()?;
        let demand = choices.demand(place.kind, number).map(|(_, candidate)| candidate);
        let id = demand.filter(|candidate| *candidate != USUAL).unwrap_or(&place.usual);
        let chosen = place.candidates.iter().find(|candidate| candidate.id == id)?;
        chosen.estimated_us
    };
    let times = places.iter().map(one).collect::<Option<Vec<f64>>>()?;
    (!times.is_empty()).then(|| times.iter().sum())
}

/// Returns at most `most` configurations that are worth a measurement: the usual one, IREE's own,
/// the other candidates of all places of a kind together, and those of single places, the best by
/// the estimates first. Of candidates whose ids begin with the same word, such as a tile, only the
/// first is among the first half.
#[must_use]
pub fn promising(places: &[Place], most: usize) -> Vec<Choices> {
    let mut lists: Vec<Vec<Choices>> = Vec::new();
    for (number, place) in places.iter().enumerate() {
        let same = |other: &&Place| other.kind == place.kind && other.candidates == place.candidates;
        let is_repeated = places.iter().take(number).any(|other| same(&other));
        let are_alike = places.iter().filter(same).count() > 1;
        let name = if are_alike { place.kind } else { place.name.as_str() };
        if !are_alike || !is_repeated {
            lists.push(diverse(place).map(|id| Choices::of(name, id)).collect());
        }
    }
    let mut all = vec![Choices::usual()];
    if !places.is_empty() {
        all.push(Choices::iree());
    }
    // In turns, so that no place is left out.
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    for turn in 0..longest {
        all.extend(lists.iter().filter_map(|list| list.get(turn)).cloned());
    }
    all.truncate(most.max(1));
    all
}

/// The ids of a place's candidates but for the usual and IREE's: first one for each first word,
/// then the others.
fn diverse(place: &Place) -> impl Iterator<Item = &str> {
    let first_word = |id: &str| id.split('_').next().map(str::to_owned);
    let mut words: BTreeSet<Option<String>> = [first_word(&place.usual)].into();
    let ids = place.candidates.iter().map(|candidate| candidate.id.as_str());
    let others = ids.filter(|id| *id != place.usual && *id != IREE);
    let (first, rest): (Vec<&str>, Vec<&str>) = others.partition(|id| words.insert(first_word(id)));
    // The best two of the same tile are closer to the estimate's minimum than the last tile.
    let mut first = first.into_iter();
    let mut rest = rest.into_iter();
    let mut ids = Vec::new();
    loop {
        let pair = [first.next(), rest.next()];
        if pair == [None, None] {
            break;
        }
        ids.extend(pair.into_iter().flatten());
    }
    ids.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_written() {
        for text in [
            "",
            "usual",
            "iree",
            "gemm0=128x64_2x2_b1",
            "conv0=panels,rows=lanes",
            "gemm=#3",
        ] {
            assert_eq!(Choices::parse(text).expect("it is known").to_string(), text);
        }
        let long = "a".repeat(MOST_BYTES + 1);
        for text in [
            "gemm",
            "gemm=",
            "=x",
            "gemm=a,gemm=b",
            "gemm=a b",
            "all=iree",
            "0=a",
            "gemm=a,,",
            &long,
        ] {
            assert!(Choices::parse(text).is_err(), "{text}");
        }
    }

    fn place(name: &str, kind: &'static str, ids: &[&str], usual: &str) -> Place {
        Place {
            name: name.to_owned(),
            kind,
            candidates: ids
                .iter()
                .map(|id| Candidate {
                    id: (*id).to_owned(),
                    estimated_us: None,
                })
                .collect(),
            usual: usual.to_owned(),
        }
    }

    fn texts(choices: &[Choices]) -> Vec<String> {
        choices.iter().map(Choices::to_string).collect()
    }

    #[test]
    fn all_configurations_change_one_place() {
        let places = [
            place("conv0", "conv", &["panels", "iree"], "panels"),
            place("rows0", "rows", &["kernel", "lanes", "iree"], "kernel"),
        ];
        let all = configurations(&places);
        assert_eq!(
            texts(&all),
            ["usual", "iree", "conv0=iree", "rows0=iree", "rows0=lanes"]
        );
        assert_eq!(texts(&configurations(&[])), ["usual"]);
    }

    #[test]
    fn promising_ones_differ() {
        let ids = [
            "64x64_2x2_b1",
            "64x64_2x2_b2",
            "64x64_2x4_b1",
            "32x32_2x2_b1",
            "16x64_1x2_b1",
        ];
        let places = [place("gemm0", "gemm", &ids, "64x64_2x2_b1")];
        assert_eq!(
            texts(&promising(&places, 5)),
            [
                "usual",
                "iree",
                "gemm0=32x32_2x2_b1",
                "gemm0=64x64_2x2_b2",
                "gemm0=16x64_1x2_b1"
            ]
        );
        // Places with the same candidates change together.
        let rows = ["rows0", "rows1"].map(|name| place(name, "rows", &["kernel", "lanes", "iree"], "kernel"));
        assert_eq!(texts(&promising(&rows, 12)), ["usual", "iree", "rows=lanes"]);
    }
}
