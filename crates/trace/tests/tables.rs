//! Rows, and the declarations of their columns.

use thalweg_trace::{Kind, QueueRow, Row, TABLES, Value};

#[test]
fn a_row_returns_its_values_in_column_order() {
    let row = QueueRow {
        experiment: 1,
        repetition: 2,
        link: "forward",
        t_us: 3,
        backlog_bytes: 4,
        backlog_packets: 5,
        dropped_packets: 6,
        early_drops: Some(7),
        policed_packets: None,
        lost_packets: 8,
        marked_packets: 9,
        sent_packets: 10,
        sent_bytes: 11,
        sojourn_sum_us: Some(12),
        capacity_bytes: None,
    };
    let mut values = Vec::new();
    row.values(&mut |value| values.push(value));
    assert_eq!(values.len(), QueueRow::TABLE.columns.len());
    assert_eq!(values[2], Value::Text("forward"));
    assert_eq!((values[7], values[8], values[13]), (Value::U64(7), Value::Empty, Value::U64(12)));
    assert_eq!(values[14], Value::Empty);
    let link = &QueueRow::TABLE.columns[2];
    assert_eq!((link.name, link.kind, link.is_key, link.is_optional), ("link", Kind::Text, true, false));
}

#[test]
fn every_column_is_documented_and_every_table_sorted_by_time_or_number() {
    for table in TABLES {
        assert!(!table.about.is_empty());
        assert!(table.columns.iter().any(|column| column.is_key), "{}", table.name);
        for column in table.columns {
            assert!(!column.about.is_empty() && !column.about.starts_with(' '), "{}.{}", table.name, column.name);
        }
    }
}
