//! Compiles the BPF programs that the agent carries.

mod compile;

fn main() {
    println!("cargo:rerun-if-changed=compile.rs");
    compile::compile("cc/bbr_cpu", &["bbr_cpu"]);
}
