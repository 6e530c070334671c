//! Doorbell's RPC beside tonic, tarpc and quinn: an echo service in each, called by the same loops.
//!
//! Each measurement has three processes of this program. The first prints; a client, which the first
//! starts, measures; a server, which the client starts, answers. Client and server are bound to
//! processors of their own.

mod args;
mod cable;
mod case;
mod ends;
mod histogram;
mod idle;
mod line;
mod load;
mod overload;
mod plan;
mod processors;
mod report;
mod system;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, End};

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = match args.end {
        None => plan::run(&args),
        Some(End::Client) => ends::client(&args),
        Some(End::Server) => ends::server(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let end = args.end.map_or("rpc-bench", End::name);
            eprintln!("{end}: {why:#}");
            ExitCode::FAILURE
        }
    }
}
