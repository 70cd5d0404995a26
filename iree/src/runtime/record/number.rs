//! Detection of the words of a recording that are numbers from the caller.
//!
//! Both recorded invocations are passed numbers that encode their parameter and half. A word on
//! which the two recordings agree is a constant; a word on which they differ is the caller's if in
//! both it is the value that was passed. Any other word was calculated from a number on the host,
//! which a list of commands cannot repeat.

use super::command::{Command, KernelArgument, Word};
use crate::runtime::Parameter;

/// Maximum number of numbers: a tag of seven bits encodes a number's position and half. The
/// narrowest number has eight bits, and the eighth distinguishes the two takes.
const MAX_NUMBERS: usize = 64;

/// One of the two recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    First,
    Second,
}

/// The numbers among a function's parameters.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Index and size in bytes of each parameter that is a number.
    parameters: Vec<(usize, u8)>,
}

impl Numbers {
    /// Collects the numbers among `parameters`. Returns `None` if there are more than
    /// [`MAX_NUMBERS`].
    pub(super) fn of(parameters: &[Parameter]) -> Option<Self> {
        let parameters: Vec<(usize, u8)> = (0..)
            .zip(parameters)
            .filter_map(|(index, parameter)| match parameter {
                Parameter::Number { bytes } => Some((index, *bytes)),
                _ => None,
            })
            .collect();
        (parameters.len() <= MAX_NUMBERS).then_some(Numbers { parameters })
    }

    /// Returns the bits that parameter `index` is passed in `take`.
    pub(super) fn bits(&self, index: usize, take: Take) -> u64 {
        let number = (0..).zip(&self.parameters).find(|(_, (own, _))| *own == index);
        let Some((position, &(_, bytes))) = number else {
            return 0;
        };
        let low = u64::from(word(position, false, bytes, take));
        match bytes {
            8 => u64::from(word(position, true, bytes, take)) << 32 | low,
            _ => low,
        }
    }

    /// Marks the words of `commands` that are numbers of the caller. Returns `false` if `again`
    /// differs in anything else.
    pub(super) fn mark(&self, commands: &mut [Command], again: &[Command]) -> bool {
        commands.len() == again.len()
            && commands.iter_mut().zip(again).all(|(command, again)| {
                match (&mut *command, again) {
                    (Command::Launch(launch), Command::Launch(again)) => {
                        for pair in launch.parameters.iter_mut().zip(&again.parameters) {
                            if let (KernelArgument::Word(word), KernelArgument::Word(again)) = pair {
                                self.mark_word(word, again);
                            }
                        }
                    }
                    (Command::Fill { pattern, .. }, Command::Fill { pattern: again, .. }) => {
                        self.mark_word(pattern, again);
                    }
                    _ => {}
                }
                self.is_same(command, again)
            })
    }

    fn mark_word(&self, word: &mut Word, again: &Word) {
        let (Word::Constant(first), Word::Constant(second)) = (&*word, again) else {
            return;
        };
        if first != second
            && let Some((index, high)) = self.find(*first, *second)
        {
            *word = Word::Number { index, high };
        }
    }

    /// Returns the parameter and the half that were passed as `first` and `second` in the two
    /// takes.
    fn find(&self, first: u32, second: u32) -> Option<(usize, bool)> {
        (0..).zip(&self.parameters).find_map(|(position, &(index, bytes))| {
            let is_it = |high: &bool| {
                word(position, *high, bytes, Take::First) == first
                    && word(position, *high, bytes, Take::Second) == second
            };
            [false, true].into_iter().find(is_it).map(|high| (index, high))
        })
    }

    /// Returns whether a marked command equals the other recording's command.
    fn is_same(&self, marked: &Command, again: &Command) -> bool {
        let plain = |word: &mut Word| {
            if let Word::Number { index, high } = *word {
                let bits = self.bits(index, Take::Second);
                *word = Word::Constant(if high { (bits >> 32) as u32 } else { bits as u32 });
            }
        };
        let mut marked = marked.clone();
        match &mut marked {
            Command::Launch(launch) => {
                for value in &mut launch.parameters {
                    if let KernelArgument::Word(word) = value {
                        plain(word);
                    }
                }
            }
            Command::Fill { pattern, .. } => plain(pattern),
            Command::Copy { .. } => {}
        }
        marked == *again
    }
}

/// Returns one half of a number as it is passed in `take`. As floats the values of the two takes
/// are huge and of opposite signs, so that no clamp leaves both unchanged.
const fn word(position: u32, high: bool, bytes: u8, take: Take) -> u32 {
    let tag = 2 * position + high as u32;
    match (bytes, take) {
        (1, Take::First) => tag,
        (1, Take::Second) => tag ^ 0xff,
        (2, Take::First) => 0x7b00 | tag,
        (2, Take::Second) => 0xfb00 | tag ^ 0xff,
        (_, Take::First) => 0x7e5a_3c00 | tag,
        (_, Take::Second) => 0xfea5_c300 | tag ^ 0xff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Address, Function, Launch};

    fn launch(words: &[u32]) -> Vec<Command> {
        let address = KernelArgument::Address(Address::Fixed(64));
        let words = words.iter().map(|&word| KernelArgument::Word(Word::Constant(word)));
        vec![Command::Launch(Launch {
            function: Function(std::ptr::null_mut()),
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            parameters: [address].into_iter().chain(words).collect(),
        })]
    }

    fn numbers() -> Numbers {
        let parameters = [8, 0, 4, 2, 1].map(|bytes| match bytes {
            0 => Parameter::Workspace,
            bytes => Parameter::Number { bytes },
        });
        Numbers::of(&parameters).unwrap()
    }

    fn halves(bits: u64) -> [u32; 2] {
        [bits as u32, (bits >> 32) as u32]
    }

    #[test]
    fn numbers_are_found_wherever_they_are() {
        let numbers = numbers();
        let words = |take| {
            let [low, high] = halves(numbers.bits(0, take));
            let rest = [2, 3, 4].map(|index| numbers.bits(index, take) as u32);
            [&[7, high], &rest[..], &[low, rest[0]]].concat()
        };
        let mut commands = launch(&words(Take::First));
        assert!(numbers.mark(&mut commands, &launch(&words(Take::Second))));
        let Some(Command::Launch(launch)) = commands.pop() else {
            panic!("no launch")
        };
        let number = |index, high| KernelArgument::Word(Word::Number { index, high });
        let expected = [
            KernelArgument::Address(Address::Fixed(64)),
            KernelArgument::Word(Word::Constant(7)),
            number(0, true),
            number(2, false),
            number(3, false),
            number(4, false),
            number(0, false),
            number(2, false),
        ];
        assert_eq!(launch.parameters, expected);
    }

    #[test]
    fn what_was_calculated_is_seen() {
        let numbers = numbers();
        let [first, second] = [Take::First, Take::Second].map(|take| numbers.bits(2, take) as u32);
        let float = |bits: u32, make: fn(f32) -> f32| make(f32::from_bits(bits)).to_bits();
        let makes: [fn(f32) -> f32; 5] = [|x| -x, f32::abs, |x| x.max(0.0), |x| x.clamp(-6.0, 6.0), |x| x + x];
        for make in makes {
            let mut commands = launch(&[float(first, make)]);
            assert!(!numbers.mark(&mut commands, &launch(&[float(second, make)])));
        }
        // A constant that happens to equal a passed value in one take stays a constant.
        let mut commands = launch(&[first]);
        assert!(numbers.mark(&mut commands, &launch(&[first])));
        assert_eq!(commands, launch(&[first]));
        // Another number of commands, another number of arguments.
        assert!(!numbers.mark(&mut commands, &[]));
        assert!(!numbers.mark(&mut commands, &launch(&[first, first])));
    }

    #[test]
    fn there_are_not_too_many() {
        let many = vec![Parameter::Number { bytes: 1 }; MAX_NUMBERS];
        let numbers = Numbers::of(&many).unwrap();
        let passed = |take| (0..many.len()).map(move |index| (index, take));
        let all: std::collections::HashSet<u64> = passed(Take::First)
            .chain(passed(Take::Second))
            .map(|(index, take)| numbers.bits(index, take))
            .collect();
        assert_eq!(all.len(), 2 * MAX_NUMBERS);
        assert!(Numbers::of(&[many, vec![Parameter::Number { bytes: 8 }]].concat()).is_none());
    }
}
