//! Sorts the rows of a group by their keys.
//!
//! Rows arrive in chronological order, with all connections interleaved. Sorted by connection, they take less disk
//! space. Within a group only a few bits of the keys differ: these are packed into one integer per row, together with
//! the row's index, and a radix sort orders the integers in a few passes without comparisons.

use crate::column::{Cells, Column};

const BITS_PER_PASS: u32 = 11;
const BUCKETS: usize = 1 << BITS_PER_PASS;

/// Returns the indices of the rows, sorted by `keys`. Rows with equal keys keep their order. An empty key sorts first.
pub fn by_keys<'a>(keys: impl DoubleEndedIterator<Item = &'a Column>, rows: usize) -> Vec<u32> {
    let mut sorter = Sorter::new(rows);
    // The last key has the lowest bits.
    for column in keys.rev().filter(|column| !column.is_blank()) {
        match &column.cells {
            Cells::U64(cells) => sorter.add(|row| cells[row] as u64),
            Cells::Text(texts) => {
                let mut alphabet: Vec<usize> = (0..texts.entries.len()).collect();
                alphabet.sort_by_key(|&number| texts.entries[number].data());
                let mut ranks = vec![0; alphabet.len()];
                for (rank, number) in (0..).zip(alphabet) {
                    ranks[number] = rank;
                }
                sorter.add(|row| ranks.get(texts.cells[row] as usize).copied().unwrap_or(0));
            }
            Cells::F64(_) | Cells::Bool(_) => panic!("keys are integers and texts, not {}", column.name),
        }
        if let Some(levels) = &column.levels {
            sorter.add(|row| u64::from(levels[row] > 0));
        }
    }
    sorter.finish()
}

/// Sorts rows by keys that are added in reverse order, from the last to the first.
struct Sorter {
    /// The order by the keys sorted so far.
    order: Vec<u32>,
    /// For each position in `order`: key bits that are not sorted yet, above the position itself.
    packed: Vec<u64>,
    /// Number of bits of a position.
    place_bits: u32,
    /// Number of bits of `packed` in use.
    width: u32,
}

impl Sorter {
    fn new(rows: usize) -> Sorter {
        let order: Vec<u32> = (0..u32::try_from(rows).expect("a group has fewer than 2^32 rows")).collect();
        let place_bits = bits(rows.saturating_sub(1) as u64);
        let packed = order.iter().copied().map(u64::from).collect();
        Sorter { order, packed, place_bits, width: place_bits }
    }

    /// Adds a key that precedes those added so far. `key` returns it for a row; only differences between keys matter.
    fn add(&mut self, key: impl Fn(usize) -> u64) {
        let keys = || (0..self.order.len()).map(&key);
        let (Some(least), Some(greatest)) = (keys().min(), keys().max()) else { return };
        let (all_bits, mut done) = (bits(greatest - least), 0);
        while done < all_bits {
            if self.width == u64::BITS {
                self.sort();
            }
            let taken = (all_bits - done).min(u64::BITS - self.width);
            let mask = u64::MAX >> (u64::BITS - taken);
            for (packed, &row) in self.packed.iter_mut().zip(&self.order) {
                *packed |= ((key(row as usize) - least) >> done & mask) << self.width;
            }
            self.width += taken;
            done += taken;
        }
    }

    fn finish(mut self) -> Vec<u32> {
        self.sort();
        self.order
    }

    /// Sorts by the keys added since the last call.
    fn sort(&mut self) {
        let mut dealt = vec![0; self.packed.len()];
        for shift in (self.place_bits..self.width).step_by(BITS_PER_PASS as usize) {
            deal(&self.packed, &mut dealt, shift);
            std::mem::swap(&mut self.packed, &mut dealt);
        }
        let place = |packed: u64| (packed & ((1 << self.place_bits) - 1)) as usize;
        self.order = self.packed.iter().map(|&packed| self.order[place(packed)]).collect();
        self.packed = (0..).take(self.order.len()).collect();
        self.width = self.place_bits;
    }
}

/// Distributes the integers to their buckets and concatenates the buckets, in a stable way.
fn deal(packed: &[u64], dealt: &mut [u64], shift: u32) {
    let bucket = |packed: u64| (packed >> shift) as usize % BUCKETS;
    let mut places = [0; BUCKETS];
    packed.iter().for_each(|&row| places[bucket(row)] += 1);
    let mut next = 0;
    for place in &mut places {
        (*place, next) = (next, next + *place);
    }
    for &row in packed {
        let place = &mut places[bucket(row)];
        dealt[*place] = row;
        *place += 1;
    }
}

/// Returns the number of bits of a number.
fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::by_keys;
    use crate::column::Column;
    use thalweg_trace::{Kind, Value};

    /// Returns a column of 1000 rows with the same pseudorandom values in every call.
    fn column(kind: Kind, is_optional: bool, value: impl Fn(u64) -> Value<'static>) -> Column {
        let mut column = Column::new("key", kind, is_optional);
        (0..1000).for_each(|row: u64| column.push(value(row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7)));
        column
    }

    #[test]
    fn keys_of_any_width_sort_like_their_values() {
        const TEXTS: [&str; 3] = ["queued", "dropped", "lost"];
        let narrow = |mixed: u64| mixed % 5;
        let wide = |mixed: u64| if mixed % 3 == 0 { u64::MAX - mixed } else { mixed };
        let text = |mixed: u64| TEXTS[(mixed % 3) as usize];
        let maybe = |mixed: u64| (mixed % 7 > 2).then_some(mixed);
        let columns = [
            column(Kind::U64, false, |mixed| Value::U64(narrow(mixed))),
            column(Kind::Text, false, |mixed| Value::Text(text(mixed))),
            column(Kind::U64, true, |mixed| maybe(mixed).map_or(Value::Empty, Value::U64)),
            column(Kind::U64, false, |mixed| Value::U64(wide(mixed))),
            column(Kind::U64, false, |_| Value::U64(9)),
        ];
        let mixed = |row: u32| u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
        for keys in [vec![0], vec![4, 1], vec![1, 3, 0], vec![0, 1, 2, 3], vec![3, 2]] {
            let value = |key: usize, row: u32| -> (Option<u64>, &str) {
                match key {
                    0 => (Some(narrow(mixed(row))), ""),
                    1 => (None, text(mixed(row))),
                    2 => (maybe(mixed(row)), ""),
                    3 => (Some(wide(mixed(row))), ""),
                    _ => (None, ""),
                }
            };
            let mut expected: Vec<u32> = (0..1000).collect();
            expected.sort_by_key(|&row| keys.iter().map(|&key| value(key, row)).collect::<Vec<_>>());
            assert_eq!(by_keys(keys.iter().map(|&key| &columns[key]), 1000), expected, "by {keys:?}");
        }
    }

    #[test]
    fn empty_and_single_row_groups_are_sorted() {
        let empty = Column::new("key", Kind::U64, false);
        let mut single = Column::new("key", Kind::Text, false);
        single.push(Value::Text("forward"));
        assert_eq!((by_keys([&empty].into_iter(), 0), by_keys([&single].into_iter(), 1)), (vec![], vec![0]));
    }
}
