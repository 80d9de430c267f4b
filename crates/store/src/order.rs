//! The rows of a group in the order of their keys.
//!
//! Rows arrive by time, all connections in turn. Next to each other, the rows of one connection take half the room on the
//! disk. Within a group few bits of the keys differ, so that dealing rows into buckets, from the last bits of the last key
//! to the first bits of the first one (a radix sort), takes a few passes and no comparison.

use crate::column::{Cells, Column};

const BITS_PER_PASS: usize = 11;
const BUCKETS: usize = 1 << BITS_PER_PASS;

/// The numbers of the rows, sorted by `keys`; rows with equal keys stay as they came. A key that is empty is the smallest.
pub fn by_keys<'a>(keys: impl DoubleEndedIterator<Item = &'a Column>, rows: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(rows).expect("a group has fewer than 2^32 rows")).collect();
    let mut dealt = vec![0; rows];
    for column in keys.rev() {
        let ranks = ranks(column);
        let bits = ranks.iter().fold(0, |bits, rank| bits | rank);
        let passes = (64 - bits.leading_zeros() as usize).div_ceil(BITS_PER_PASS);
        for pass in 0..passes {
            deal(&order, &mut dealt, |row| (ranks[row as usize] >> (pass * BITS_PER_PASS)) as usize % BUCKETS);
            std::mem::swap(&mut order, &mut dealt);
        }
        if let Some(levels) = &column.levels {
            deal(&order, &mut dealt, |row| usize::from(levels[row as usize] > 0));
            std::mem::swap(&mut order, &mut dealt);
        }
    }
    order
}

/// Puts the rows of each bucket behind those of the bucket before.
fn deal(order: &[u32], dealt: &mut [u32], bucket: impl Fn(u32) -> usize) {
    let mut places = [0; BUCKETS];
    order.iter().for_each(|&row| places[bucket(row)] += 1);
    let mut next = 0;
    for place in &mut places {
        (*place, next) = (next, next + *place);
    }
    for &row in order {
        let place = &mut places[bucket(row)];
        dealt[*place] = row;
        *place += 1;
    }
}

/// For each row a number: the smaller one comes first. The smallest is 0. Rows without a value may have any.
fn ranks(column: &Column) -> Vec<u64> {
    match &column.cells {
        Cells::U64(cells) => {
            let smallest = cells.iter().map(|&cell| cell as u64).min().unwrap_or(0);
            cells.iter().map(|&cell| cell as u64 - smallest).collect()
        }
        Cells::Text(texts) => {
            let mut alphabet: Vec<usize> = (0..texts.entries.len()).collect();
            alphabet.sort_by_key(|&number| texts.entries[number].data());
            let mut ranks = vec![0; alphabet.len()];
            for (rank, number) in (0..).zip(alphabet) {
                ranks[number] = rank;
            }
            // Where no row has a text, there is none of that number.
            texts.cells.iter().map(|&number| ranks.get(number as usize).copied().unwrap_or(0)).collect()
        }
        Cells::F64(_) | Cells::Bool(_) => panic!("keys are integers and texts, not {}", column.name),
    }
}
