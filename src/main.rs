fn main() -> std::process::ExitCode {
    loopx::cli::run(std::env::args_os())
}
