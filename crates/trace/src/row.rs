//! Tables, columns and rows in general.

/// Kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A non-negative integer.
    U64,
    /// A number.
    F64,
    /// A text.
    Text,
    /// `true` or `false`.
    Bool,
}

impl Kind {
    /// The kind's name in `thalweg schema --columns`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::U64 => "u64",
            Kind::F64 => "f64",
            Kind::Text => "string",
            Kind::Bool => "bool",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, with the unit at its end if there is one.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// Whether a row may leave it empty.
    pub is_optional: bool,
    /// Whether the column identifies the row. Sorting by these columns, in their order, sorts a table.
    pub is_key: bool,
    /// Description.
    pub about: &'static str,
}

/// A table of the run directory, or of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name; in a run directory, also the name of the table's folder.
    pub name: &'static str,
    /// Description of a row.
    pub about: &'static str,
    /// Columns, in order.
    pub columns: &'static [Column],
}

/// A value of a row, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A non-negative integer.
    U64(u64),
    /// A number.
    F64(f64),
    /// A text.
    Text(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// Empty.
    Empty,
}

/// Takes values column by column. This is a trait because the store, which implements it, is above this crate.
pub trait Columns {
    /// The next column: its values, row by row.
    fn column<'a>(&mut self, values: impl ExactSizeIterator<Item = Value<'a>> + Clone);
}

/// A row of a declared table.
pub trait Row: Sized {
    /// The table that the row belongs to.
    const TABLE: &'static Table;

    /// Hands over the values in the order of the table's columns.
    fn values<'a>(&'a self, take: &mut impl FnMut(Value<'a>));

    /// Hands over the columns of some rows in the table's order. For rows of many columns this is faster than handing
    /// over rows one by one, where each value goes to a different location.
    fn columns(rows: &[Self], take: &mut impl Columns);
}

/// A Rust type that a column can hold.
pub(crate) trait Cell {
    const KIND: Kind;
    const IS_OPTIONAL: bool = false;
    fn value(&self) -> Value<'_>;
}

impl Cell for u64 {
    const KIND: Kind = Kind::U64;
    fn value(&self) -> Value<'_> {
        Value::U64(*self)
    }
}

impl Cell for f64 {
    const KIND: Kind = Kind::F64;
    fn value(&self) -> Value<'_> {
        Value::F64(*self)
    }
}

impl Cell for bool {
    const KIND: Kind = Kind::Bool;
    fn value(&self) -> Value<'_> {
        Value::Bool(*self)
    }
}

impl Cell for std::sync::Arc<str> {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Cell for std::rc::Rc<str> {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Cell for &'static str {
    const KIND: Kind = Kind::Text;
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_OPTIONAL: bool = true;
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Empty, Cell::value)
    }
}

/// Declares a table: a struct whose documented fields are its columns. `key` before a field makes it a key. Optional
/// columns are empty in the default row, so that a row can be written as `Row { column: value, ..Row::default() }`.
macro_rules! table {
    (@is_key key) => { true };
    (@is_key) => { false };
    (
        $( #[doc = $about:literal] )+
        $name:ident in $table:literal {
            $( $( #[doc = $text:literal] )+ $($key:ident)? : $field:ident : $kind:ty ),* $(,)?
        }
    ) => {
        $( #[doc = $about] )+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $( $( #[doc = $text] )+ pub $field: $kind, )*
        }

        impl $crate::row::Row for $name {
            const TABLE: &'static $crate::row::Table = &$crate::row::Table {
                name: $table,
                about: concat!($( $about ),+).trim_ascii(),
                columns: &[ $( $crate::row::Column {
                    name: stringify!($field),
                    kind: <$kind as $crate::row::Cell>::KIND,
                    is_optional: <$kind as $crate::row::Cell>::IS_OPTIONAL,
                    is_key: $crate::row::table!(@is_key $($key)?),
                    about: concat!($( $text ),+).trim_ascii(),
                } ),* ],
            };

            fn values<'a>(&'a self, take: &mut impl FnMut($crate::row::Value<'a>)) {
                $( take($crate::row::Cell::value(&self.$field)); )*
            }

            fn columns(rows: &[Self], take: &mut impl $crate::row::Columns) {
                $( take.column(rows.iter().map(|row| $crate::row::Cell::value(&row.$field))); )*
            }
        }
    };
}
pub(crate) use table;
