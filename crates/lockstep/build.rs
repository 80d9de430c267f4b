//! Compiles the BPF programs in `bpf/cc/lockstep`.

#[path = "../agent/compile.rs"]
mod compile;

fn main() {
    println!("cargo:rerun-if-changed=../agent/compile.rs");
    compile::compile("cc/lockstep", &["bbr", "cubic", "dctcp", "reno"]);
}
