use super::super::folder::{Listed, Listing, Name};

fn listed(first: u64, last: u64) -> Listed {
    Listed { name: Name { first, last, at_s: 0 }, bytes: 1 }
}

#[test]
fn a_file_name_holds_the_time_of_the_first_flush_and_the_range_of_flushes() {
    let name = Name { first: 1_769_860_800, last: 1_769_864_390, at_s: 1_769_860_800 };
    assert_eq!(name.text(), "20260131T120000Z-1769860800-1769864390.parquet");
    assert_eq!(Name::parse(&name.text()), Some(name));
}

#[test]
fn other_file_names_are_ignored() {
    for text in [
        ".lock",
        "records.parquet",
        ".tmp-1-1",
        "20260131T120000Z-1769860800.parquet",
        "20260131T120000Z-1769860800-1769864390.parquet.gz",
        "20260131T120000Z-176986080-1769864390.parquet",
        "20260131T120000Z-+769860800-1769864390.parquet",
        "20260131T120000Z-1769864390-1769860800.parquet",
        "20261331T120000Z-1769860800-1769864390.parquet",
        "20260131T12000é-1769860800-1769864390.parquet",
        "2026-01-31T12:00:00Z-1769860800-1769864390.parquet",
    ] {
        assert_eq!(Name::parse(text), None, "{text}");
    }
}

#[test]
fn a_file_whose_flush_range_lies_within_another_is_part_of_it() {
    let listing = Listing::sorted(vec![
        listed(7, 7),
        listed(5, 5),
        listed(1, 5),
        listed(1, 1),
        listed(3, 5),
        listed(2, 3),
        listed(6, 6),
        listed(5, 6),
    ]);
    let counted: Vec<_> = listing.files.iter().map(|file| (file.name.first, file.name.last)).collect();
    assert_eq!(counted, [(1, 5), (5, 6), (7, 7)]);
    assert_eq!(listing.parts.len(), 5);
    assert_eq!((listing.last(), listing.bytes()), (7, 3));
}
