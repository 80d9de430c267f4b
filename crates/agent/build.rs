//! Compiles the BPF programs that the agent carries, and those that its tests load.

mod compile;

fn main() {
    println!("cargo:rerun-if-changed=compile.rs");
    compile::compile("cc/bbr_cpu", &["bbr_cpu"]);
    compile::compile("cc/bbr3", &["bbr3"]);
    compile::compile("cc/bbr_tuned", &["bbr_tuned"]);
    compile::compile("flow", &["record"]);
    compile::compile("cc/test", &["fixed_window", "rejected"]);
    compile::compile("flow/test", &["forgetful", "conn_tuner"]);
}
