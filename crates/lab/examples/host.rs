//! The process `thalweg-engine host` on its own, for tests of this crate.

fn main() -> Result<(), thalweg_lab::Error> {
    thalweg_lab::host::serve()
}
