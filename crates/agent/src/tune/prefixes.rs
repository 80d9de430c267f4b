//! Reads a user's table of networks: CSV with a column `network` (such as MaxMind's `Blocks` with `Locations` in the
//! same folder), RouteViews' prefix-to-AS lines, or a folder of such files, optionally compressed with gzip. CSV fields
//! with a line break are not supported.

use crate::files;
use flate2::read::GzDecoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};
use thalweg_policy::{Places, Prefix, Tree};
use thalweg_store::Problem;

/// Alternative names of columns.
const NAMES: [(&str, &str); 7] = [
    ("asn", "as"),
    ("as_number", "as"),
    ("autonomous_system_number", "as"),
    ("country_iso_code", "country"),
    ("country_code", "country"),
    ("as_org", "as_name"),
    ("autonomous_system_organization", "as_name"),
];

/// MaxMind's column with the id of a location, which the file of locations describes.
const GEONAME: &str = "geoname_id";

/// Maximum size of a table after decompression, in bytes.
const MAX_UNPACKED: u64 = 4 << 30;

/// Length in bytes from which a line, with its line break, is rejected.
const MAX_LINE: u64 = 1 << 16;

const GZIP: [u8; 2] = [0x1f, 0x8b];

const EXPECTED: &str = "CSV with a column `network`, or lines of RouteViews: address, length, AS";
const HINT: &str = "for example the heading network,asn,country and the row 192.0.2.0/24,64496,DE";

/// Reads a table or the tables in a folder; only the `wanted` columns are kept.
///
/// # Errors
/// If a table cannot be read or is malformed, or there are no networks.
pub fn read(place: &Path, wanted: &BTreeSet<String>, tree: &Tree) -> Result<Places, Problem> {
    let mut reader = Reader { wanted, tree, places: Places::default(), networks: 0 };
    for file in files(place).map_err(|error| unreadable(place, &error))? {
        reader.file(&file)?;
    }
    if reader.networks == 0 {
        return Err(wrong(place, None, "no networks"));
    }
    Ok(reader.places)
}

struct Reader<'a> {
    wanted: &'a BTreeSet<String>,
    tree: &'a Tree,
    places: Places,
    networks: u64,
}

impl Reader<'_> {
    fn file(&mut self, file: &Path) -> Result<(), Problem> {
        let mut text = open(file).map_err(|error| unreadable(file, &error))?;
        let mut number = 0;
        let mut next = || {
            number += 1;
            let line = line(&mut text).map_err(|error| wrong(file, Some(number), &error.to_string()))?;
            Ok::<_, Problem>(line.map(|line| (number, line)))
        };
        let mut head = next()?;
        while head.as_ref().is_some_and(|(_, line)| line.starts_with('#')) {
            head = next()?;
        }
        let Some((number, first)) = head else { return Ok(()) };
        if first.contains('\t') {
            let mut line = Some((number, first));
            while let Some((number, text)) = line {
                self.route(&text).map_err(|why| wrong(file, Some(number), &why))?;
                line = next()?;
            }
            return Ok(());
        }
        let heading = Heading::read(file, &first, self.wanted)?;
        while let Some((number, line)) = next()? {
            if !line.trim().is_empty() {
                let row = heading.row(&line).map_err(|why| wrong(file, Some(number), &why))?;
                self.add(&heading.columns, &row.0, row.1).map_err(|why| wrong(file, Some(number), &why))?;
            }
        }
        Ok(())
    }

    fn route(&mut self, line: &str) -> Result<(), String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [] => Ok(()),
            _ if line.starts_with('#') => Ok(()),
            [address, length, number] => {
                let columns = if self.wanted.contains("as") { vec!["as".to_owned()] } else { Vec::new() };
                self.add(&columns, &format!("{address}/{length}"), vec![autonomous_system(number)])
            }
            _ => Err(format!("`{line}` is not an address, a length and an AS")),
        }
    }

    fn add(&mut self, columns: &[String], network: &str, values: Vec<String>) -> Result<(), String> {
        self.networks += 1;
        let network = network.trim();
        let prefix = match network {
            _ if network.contains('/') => network.to_owned(),
            _ if network.contains(':') => format!("{network}/128"),
            _ => format!("{network}/32"),
        };
        let network: Prefix =
            prefix.parse().map_err(|error: thalweg_policy::PrefixError| format!("`{network}`: {}", error.why))?;
        // A network smaller than a destination does not describe all of it.
        if !columns.is_empty() && self.tree.leaf_of(network) == network {
            self.places.add(columns, network, values);
        }
        Ok(())
    }
}

struct Heading {
    fields: usize,
    network: usize,
    columns: Vec<String>,
    /// Positions of `columns`.
    at: Vec<usize>,
    /// Countries by MaxMind's location id.
    countries: BTreeMap<String, String>,
}

impl Heading {
    fn read(file: &Path, line: &str, wanted: &BTreeSet<String>) -> Result<Heading, Problem> {
        let names: Vec<String> =
            fields(line.trim_start_matches('\u{feff}')).iter().map(|name| name.trim().to_lowercase()).collect();
        let Some(network) = names.iter().position(|name| name == "network") else {
            return Err(wrong(file, Some(1), "no column `network` in the heading"));
        };
        let countries =
            if names.iter().any(|name| name == GEONAME) { countries_beside(file)? } else { BTreeMap::new() };
        let mut heading = Heading { fields: names.len(), network, columns: Vec::new(), at: Vec::new(), countries };
        for (at, name) in names.iter().enumerate() {
            let column =
                NAMES.iter().find(|(heading_name, _)| heading_name == name).map_or(name.as_str(), |(_, column)| column);
            let column = if name == GEONAME && !heading.countries.is_empty() { "country" } else { column };
            // Of two columns with the same name, the first is used.
            if at != network && wanted.contains(column) && !heading.columns.iter().any(|other| other == column) {
                heading.columns.push(column.to_owned());
                heading.at.push(at);
            }
        }
        Ok(heading)
    }

    fn row(&self, line: &str) -> Result<(String, Vec<String>), String> {
        let mut fields = fields(line);
        if fields.len() != self.fields {
            return Err(format!("{} fields; the heading has {}", fields.len(), self.fields));
        }
        let value = |(column, &at): (&String, &usize)| {
            let text = fields[at].trim();
            match column.as_str() {
                "as" if !text.is_empty() => autonomous_system(text),
                "country" if !self.countries.is_empty() => self.countries.get(text).cloned().unwrap_or_default(),
                _ => text.to_owned(),
            }
        };
        let values = self.columns.iter().zip(&self.at).map(value).collect();
        Ok((std::mem::take(&mut fields[self.network]), values))
    }
}

/// Splits a line of CSV into fields. A quote within quotes is written twice.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let (mut is_quoted, mut letters) = (false, line.chars().peekable());
    while let Some(letter) = letters.next() {
        let field = fields.last_mut().expect("there is one");
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            '\r' => {}
            letter => field.push(letter),
        }
    }
    fields
}

/// Returns the countries by MaxMind location id, from the file of locations; empty if it or a column is missing.
fn countries_beside(file: &Path) -> Result<BTreeMap<String, String>, Problem> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default();
    names.retain(|path| path.to_string_lossy().ends_with("Locations-en.csv"));
    names.sort();
    let Some(beside) = names.first() else { return Ok(BTreeMap::new()) };
    let mut text = open(beside).map_err(|error| unreadable(beside, &error))?;
    let mut next = || line(&mut text).map_err(|error| unreadable(beside, &error));
    let heading = next()?.unwrap_or_default();
    let heading = fields(&heading);
    let at = |wanted: &str| heading.iter().position(|name| name == wanted);
    let (Some(number), Some(country)) = (at(GEONAME), at("country_iso_code")) else { return Ok(BTreeMap::new()) };
    let mut countries = BTreeMap::new();
    while let Some(line) = next()? {
        let fields = fields(&line);
        if let (Some(number), Some(country)) = (fields.get(number), fields.get(country)) {
            countries.insert(number.clone(), country.clone());
        }
    }
    Ok(countries)
}

/// Normalizes an AS number to the form AS64496. Of several origins (`64500_64501`), the first one is used.
fn autonomous_system(text: &str) -> String {
    let first = text.split('_').next().unwrap_or_default().trim_matches(['{', '}']).to_uppercase();
    format!("AS{}", first.strip_prefix("AS").unwrap_or(&first))
}

fn files(place: &Path) -> io::Result<Vec<PathBuf>> {
    if !place.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let is_table = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let has_ending = [".csv", ".gz", ".txt", ".pfx2as"].iter().any(|ending| name.ends_with(ending));
        path.is_file() && has_ending && !name.starts_with('.') && !name.contains("Locations")
    };
    let mut files: Vec<PathBuf> = fs::read_dir(place)?.flatten().map(|entry| entry.path()).filter(is_table).collect();
    files.sort();
    Ok(files)
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut plain = BufReader::new(files::open_regular(path, files::LARGE)?);
    let is_compressed = plain.fill_buf()?.starts_with(&GZIP);
    let all: Box<dyn Read> = if is_compressed { Box::new(GzDecoder::new(plain)) } else { Box::new(plain) };
    Ok(Box::new(BufReader::new(Bounded(all.take(MAX_UNPACKED + 1)))))
}

/// Reader that fails above a size limit, because a small compressed file can unpack to a very large one.
struct Bounded<R>(Take<R>);

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        if self.0.limit() == 0 {
            return Err(io::Error::other(format!("more than {MAX_UNPACKED} bytes after decompression")));
        }
        Ok(count)
    }
}

/// Returns the next line; `None` at the end of the file.
fn line(text: &mut dyn BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if text.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == MAX_LINE {
        return Err(io::Error::other(format!("a line of more than {MAX_LINE} bytes")));
    }
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    line.truncate(end);
    String::from_utf8(line).map(Some).map_err(|_| io::Error::other("invalid UTF-8"))
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let place = path.display().to_string();
    Problem::refused("cannot-read", &place, error, "a readable table of networks", &format!("check ls -l {place}"))
}

fn wrong(path: &Path, line: Option<usize>, why: &str) -> Problem {
    let place = line.map_or(path.display().to_string(), |line| format!("{}, line {line}", path.display()));
    Problem::refused("bad-prefixes", &place, why, EXPECTED, HINT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs::File;
    use std::io::Write;

    fn wanted(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn table(files: &[(&str, &str)], place: &str, names: &[&str]) -> Result<Places, Problem> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        read(&folder.path().join(place), &wanted(names), &Tree::default())
    }

    fn value(places: &Places, prefix: &str, column: &str) -> Option<String> {
        places.value(prefix.parse().unwrap(), column).map(str::to_owned)
    }

    #[test]
    fn csv_is_read_as_advise_reads_it() {
        let text = "\u{feff}Network,ASN,country,as_org\n192.0.2.0/24,64496,DE,\"One, \"\"and\"\" \
                    all\"\n2001:db8::/32,AS64497,,Two\n";
        let places = table(&[("t.csv", text)], "t.csv", &["as", "country", "as_name"]).unwrap();
        assert_eq!(value(&places, "192.0.2.0/24", "as").unwrap(), "AS64496");
        assert_eq!(value(&places, "192.0.2.0/24", "as_name").unwrap(), "One, \"and\" all");
        assert_eq!(value(&places, "2001:db8:1::/48", "as").unwrap(), "AS64497");
        assert_eq!(value(&places, "2001:db8:1::/48", "country"), None);
    }

    #[test]
    fn routeviews_lines_maxmind_locations_and_directories_are_read() {
        let routes = "# of today\n198.51.100.0\t24\t64500_64501\n203.0.113.0\t25\t64502\n";
        let blocks = "# of today\nnetwork,geoname_id\n192.0.2.0/24,77\n";
        let locations = "geoname_id,locale_code,country_iso_code\n77,en,NL\n";
        let files = [("routes.txt", routes), ("Blocks-IPv4.csv", blocks), ("Locations-en.csv", locations)];
        let places = table(&files, "", &["as", "country"]).unwrap();
        assert_eq!(value(&places, "198.51.100.0/24", "as").unwrap(), "AS64500");
        assert_eq!(value(&places, "203.0.113.0/24", "as"), None, "it is half of a destination");
        assert_eq!(value(&places, "192.0.2.0/24", "country").unwrap(), "NL");
    }

    #[test]
    fn an_address_without_a_length_describes_no_network() {
        let text = "network,as\n192.0.2.1,64496\n2001:db8::,64497\n2001:db8:1::5,64498\n";
        let places = table(&[("t.csv", text)], "t.csv", &["as"]).unwrap();
        assert_eq!(value(&places, "192.0.2.0/24", "as"), None);
        assert_eq!(value(&places, "2001:db8:2::/48", "as"), None);
    }

    #[test]
    fn gzip_is_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv.gz");
        let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::default());
        packed.write_all(b"network,as\n10.0.0.0/8,64496\n").unwrap();
        packed.finish().unwrap();
        let places = read(&path, &wanted(&["as"]), &Tree::default()).unwrap();
        assert_eq!(value(&places, "10.1.2.0/24", "as").unwrap(), "AS64496");
    }

    #[test]
    fn a_malformed_prefix_table_is_rejected_with_its_line() {
        let refusal = |text: &str| table(&[("t.csv", text)], "t.csv", &["as"]).unwrap_err().to_string();
        assert!(refusal("net,as\n").contains("t.csv, line 1: found no column `network` in the heading"));
        assert!(
            refusal("network,as\n10.0.0.0/8,1\n10.0.0.1/8,2\n")
                .contains("line 3: found `10.0.0.1/8`: address bits beyond")
        );
        assert!(refusal("network,as\n10.0.0.0/8\n").contains("line 2: found 1 fields"));
        assert!(refusal("network,as\n").contains("found no networks"));
        assert_eq!(table(&[], "none.csv", &[]).unwrap_err().code, "cannot-read");
    }
}
