//! The fingerprint of messages and views.
//!
//! A place in a modification order before which no thread can read or write any more is the same as
//! the place after it. So places are counted from the first place of a thread that has not ended
//! and is known to use the word.

use super::super::{Machine, Op, mix};
use super::{Clock, Places, View, Weak};

impl Machine {
    pub(in crate::machine) fn weak_fingerprint(&self, weak: &Weak) -> u64 {
        let live = |index: usize| !matches!(self.threads[index].pending, Op::Finished);
        let bases: Vec<Option<usize>> = weak
            .words
            .iter()
            .enumerate()
            .map(|(number, word)| {
                let users = self.touched[word.loc as usize].by;
                // A word that only one thread uses, or to which no thread has stored, is no more
                // than its value.
                if word.counted {
                    return Some(0);
                }
                if !users.is_power_of_two() && word.messages.len() > 1 {
                    let users =
                        (0..self.count).filter(|&index| users >> index & 1 == 1 && live(index));
                    let first = users.map(|index| weak.threads[index].places.at(number)).min();
                    return Some(first.unwrap_or(word.messages.len() - 1));
                }
                None
            })
            .collect();
        let places = |places: &Places| {
            bases.iter().enumerate().fold(0u64, |sum, (number, base)| {
                let after = base.map_or(0, |base| places.at(number).saturating_sub(base));
                if after == 0 {
                    return sum;
                }
                // A sum: words that threads make have their numbers in the order of the execution.
                sum.wrapping_add(mix(u64::from(weak.words[number].loc), after as u64))
            })
        };
        let clock = |hash: u64, clock: &Clock| {
            clock.iter().fold(hash, |hash, time| mix(hash, u64::from(*time)))
        };
        let view = |view: &View| clock(places(&view.places), &view.clock);
        let mut hash = places(&weak.fences);
        let with_messages = weak.words.iter().zip(&bases);
        let words = with_messages.filter_map(|(word, base)| Some((word, (*base)?)));
        hash = mix(
            hash,
            words.fold(0u64, |sum, (word, base)| {
                let messages = word.messages[base..].iter();
                sum.wrapping_add(messages.fold(u64::from(word.loc), |hash, message| {
                    let value = mix(message.value, u64::from(message.claimed));
                    mix(mix(hash, value), view(&message.view))
                }))
            }),
        );
        for (index, knowledge) in weak.threads.iter().enumerate() {
            if live(index) {
                hash = mix(hash, places(&knowledge.places));
                hash = mix(hash, view(&knowledge.read));
                hash = mix(hash, view(&knowledge.fenced));
                hash = clock(hash, &self.threads[index].clock);
                hash = mix(hash, knowledge.round);
                hash = mix(hash, u64::from(knowledge.same.1));
            }
        }
        hash
    }
}
