//! Choices between forms of one computation: the places at which the lowering chooses, the
//! candidates of each place, and demands for one candidate.
//!
//! The places, their targets and their candidates:
//!
//! - `gemm0`, `gemm1`, … (AMD): the [words](rotini_schedule::gemm::Schedule::word) of schedules, by
//!   their estimates
//! - `rows0`, … (AMD): the [words](rotini_schedule::rows::Schedule::word) of schedules
//! - `rows0`, … (CPUs): `kernel`: rotini's; `lanes`: sums in lanes; `iree`
//! - `conv0`, … (CPUs): `panels`: rotini's kernel; `patches` or `convolution`: another form for
//!   IREE; `iree`
//! - `dgrad0`, `wgrad0`, `product0`, `pool0`, `attention0`, … (CPUs): `kernel`: rotini's; `iree`
//! - `conv0`, … (other GPUs): `patches`: a matmul of patches; `iree`
//! - `fusion0` (NVIDIA): `aggressive`: IREE fuses reductions with operations that share operands
//!   with them; `plain`
//! - `tiling0` (CPUs): `packed`: IREE packs the operands of products into tiles; `plain`
//!
//! Every candidate is a form that some graph gets without a demand. `iree` is IREE's own code for
//! the operation. Callers that measure times decide among candidates; this file only lists them.

use crate::EmitError;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The name in a demand that means all places.
const ALL: &str = "all";
/// IREE's own code, as a candidate and as a demand for all places.
const IREE: &str = "iree";
/// The demand for the lowering's own choices.
const USUAL: &str = "usual";
/// Longest text with demands, in bytes.
const MOST_BYTES: usize = 1 << 12;

/// Demands for candidates, by the names of places (`gemm0`) or of their kinds (`gemm`).
///
/// As text: `gemm0=128x64_2x2_b1,rows=lanes`; `iree` for IREE's own code wherever that is a
/// candidate; `usual` for no demand at all. `usual` differs from the empty text where measured
/// choices would replace an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Choices(BTreeMap<String, String>);

/// The error of a text that is no list of choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no choice: usual, iree, or PLACE=CANDIDATE with commas between several")]
pub struct ChoicesError(String);

impl Choices {
    /// Returns the demand for the lowering's own choices.
    #[must_use]
    pub fn usual() -> Self {
        Choices::of(ALL, USUAL)
    }

    /// Returns the demand for IREE's own code at all places.
    #[must_use]
    pub fn iree() -> Self {
        Choices::of(ALL, IREE)
    }

    /// Returns the demand for a candidate at one place, or at all places of a kind.
    #[must_use]
    pub fn of(place: &str, candidate: &str) -> Self {
        Choices([(place.to_owned(), candidate.to_owned())].into())
    }

    /// Returns true if nothing is demanded, not even `usual`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a graph is lowered as it is without demands.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        self.0
            .iter()
            .all(|(place, candidate)| place == ALL && candidate == USUAL)
    }

    /// Returns the demands of both; if both have one for a place, that of `other`.
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

    /// Returns the demand for a place, and the name under which it was found.
    fn demand(&self, kind: &str, number: usize) -> Option<(&str, &str)> {
        let found = self.0.get_key_value(&format!("{kind}{number}"));
        let found = found
            .or_else(|| self.0.get_key_value(kind))
            .or_else(|| self.0.get_key_value(ALL));
        found.map(|(name, candidate)| (name.as_str(), candidate.as_str()))
    }

    /// Returns true if IREE's own code is demanded at all places.
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
    /// The id by which it is demanded.
    pub id: String,
    /// The time that a closed form estimates, in microseconds, if there is one.
    pub estimated_us: Option<f64>,
}

/// A place at which the lowering of a graph chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The kind and the number among the places of that kind, in the order of the lowering.
    pub name: String,
    /// The kind of the place, such as `gemm`.
    pub kind: &'static str,
    /// The candidates, the best by estimated time first.
    pub candidates: Vec<Candidate>,
    /// The id of the candidate that is taken without a demand.
    pub usual: String,
}

/// A candidate at a place, with the form that the lowering would use.
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

    /// Adds the time that a closed form estimates, in microseconds, if there is one.
    pub(crate) fn estimated(self, microseconds: Option<f64>) -> Self {
        Form {
            estimated_us: microseconds,
            ..self
        }
    }
}

/// The choices that apply while a graph is lowered, and the places met so far.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    wanted: Choices,
    /// Whether demands that no place takes are ignored, which holds for demands from a target's
    /// name.
    is_lenient: bool,
    /// Whether the places are to be listed.
    lists: bool,
    numbers: RefCell<BTreeMap<&'static str, usize>>,
    places: RefCell<Vec<Place>>,
    met: RefCell<BTreeSet<String>>,
}

impl Chooser {
    /// Creates a chooser for these demands; without any, for those of the target's name (`tried`).
    pub(crate) fn new(tried: Option<Choices>, choices: &Choices) -> Self {
        let tried = tried.filter(|_| choices.is_empty());
        Chooser {
            is_lenient: tried.is_some(),
            wanted: tried.unwrap_or_else(|| choices.clone()),
            ..Chooser::default()
        }
    }

    /// Returns a chooser that also lists the places.
    pub(crate) fn listing(self) -> Self {
        Chooser { lists: true, ..self }
    }

    /// Returns the form of the next place of a kind: the demanded one, else the usual one. The
    /// demand `#3` means the fourth candidate; any other is the id of a candidate, or a text that
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

    /// Returns true if [`choose`](Self::choose) takes the kernel of rotini, not IREE's own code.
    pub(crate) fn takes_kernel(&self, kind: &'static str, usual: bool) -> bool {
        let forms = || vec![Form::new("kernel", true), Form::new(IREE, false)];
        self.choose(kind, usual, forms, |_| None)
    }

    /// Returns the places that were met, if they are listed.
    pub(crate) fn into_places(self) -> Vec<Place> {
        self.places.into_inner()
    }

    /// Refuses demands that no place took.
    ///
    /// # Errors
    ///
    /// [`EmitError::Choice`] with the first such demand.
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

/// Returns the estimated time of a graph with these choices, in microseconds: the sum over all
/// places. `None` if there is no place, or a chosen candidate has no estimate.
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
/// and other candidates, the best by estimated time first. Places of one kind with the same
/// candidates change together. Candidates whose ids begin with a new word, such as another tile,
/// alternate with the remaining ones.
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
    // Round-robin over the places, so that no place is left out.
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    for turn in 0..longest {
        all.extend(lists.iter().filter_map(|list| list.get(turn)).cloned());
    }
    all.truncate(most.max(1));
    all
}

/// Returns the ids of a place's candidates without the usual one and IREE's. The first candidate of
/// each first word alternates with the remaining ones.
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
