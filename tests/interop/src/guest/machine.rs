//! QEMU: how it is started, and that it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use doorbell_kit::die_with_parent;

use crate::tools::Tool;
use crate::{Error, Image, Link, sys};

use super::GuestConfig;
use super::console::Console;

/// The name of the port that the agent looks for.
const PORT: &str = "doorbell";

/// A process of QEMU, which is killed when this is dropped.
///
/// It also dies with the thread that has started it, and so with this process. The thread is one of
/// its own: the test that boots a guest may end before others that use it.
#[derive(Debug)]
pub struct Machine {
    process: u32,
    /// The keeper ends when it is closed.
    keep: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
    listener: Option<JoinHandle<()>>,
}

impl Machine {
    /// Starts it; returns it and the agent's port.
    pub fn start(
        image: &Image,
        config: &GuestConfig,
        link: &Link,
        console: &Arc<Console>,
    ) -> Result<(Self, UnixStream), Error> {
        let failed = |what| move |source| Error::System { what, source };
        let (port, far) = UnixStream::pair().map_err(failed("making a socket"))?;
        let cable = link.guest().as_fd().try_clone_to_owned();
        let cable = cable.map_err(failed("handing a socket on"))?;
        let command = command(image, config, far.into(), cable);
        let (keep, kept) = channel();
        let (tell, told) = channel();
        let keeper = std::thread::Builder::new().name("machine".to_owned());
        let keeper = keeper.spawn(move || run(command, &tell, &kept));
        let keeper = keeper.map_err(failed("starting a thread"))?;
        let started = told.recv().expect("the keeper says what comes of it");
        let (process, said) = started.map_err(|source| Tool::QEMU.missing(source))?;
        let mut machine = Self { process, keep: Some(keep), keeper: Some(keeper), listener: None };
        let console = Arc::clone(console);
        let listener = std::thread::Builder::new().name("console".to_owned());
        let listener = listener.spawn(move || console.listen(said));
        machine.listener = Some(listener.map_err(failed("starting a thread"))?);
        Ok((machine, port))
    }

    pub const fn process(&self) -> u32 {
        self.process
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.keep = None;
        // Neither panics; and if one did, the other is still to be waited for.
        for thread in [self.keeper.take(), self.listener.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}

type Started = io::Result<(u32, io::PipeReader)>;

/// Starts QEMU, and kills it when it is kept no longer.
fn run(command: Command, tell: &Sender<Started>, kept: &Receiver<()>) {
    match spawn(command) {
        Err(why) => {
            let _ = tell.send(Err(why));
        }
        Ok((mut child, said)) => {
            let told = tell.send(Ok((child.id(), said)));
            if told.is_ok() {
                // Nothing is ever sent: this returns when the other end is dropped.
                let _ = kept.recv();
            }
            // Both fail if it has ended and was waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// With the command goes our hold on the sockets that it inherits.
fn spawn(mut command: Command) -> io::Result<(Child, io::PipeReader)> {
    let (said, says) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(says.try_clone()?).stderr(says);
    Ok((command.spawn()?, said))
}

fn command(image: &Image, config: &GuestConfig, port: OwnedFd, cable: OwnedFd) -> Command {
    let mut command = Tool::QEMU.command();
    die_with_parent(&mut command);
    let port = sys::inherit(&mut command, port);
    let cable = sys::inherit(&mut command, cable);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    command.args(["-machine", "pc", "-accel", "tcg", "-cpu", "max"]);
    // With one processor and no room for another, QEMU before 8.1 leaves memory barriers out, also
    // those between that processor and its own threads for devices: now and then the guest's
    // network interface then waits for ever for an interrupt.
    let processors = config.processors;
    let processors = format!("{processors},maxcpus={}", processors.max(2));
    command.args(["-m", &config.memory.to_string(), "-smp", &processors]);
    command.arg("-kernel").arg(image.kernel()).arg("-initrd").arg(image.archive());
    // What the processor's makers got wrong need not be guarded against here, at a price.
    let kernel = "console=ttyS0 panic=-1 mitigations=off nokaslr quiet rdinit=/init";
    command.args(["-append", &format!("{kernel} {}", config.variables())]);
    command.args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
    command.args(["-chardev", &format!("socket,id=port,fd={port}")]);
    command.args(["-device", "virtio-serial-pci"]);
    command.args(["-device", &format!("virtserialport,chardev=port,name={PORT}")]);
    command.args(["-netdev", &format!("dgram,id=cable,local.type=fd,local.str={cable}")]);
    let (mac, mtu) = (config.mac(), config.mtu);
    let card = format!("virtio-net-pci,netdev=cable,mac={mac},host_mtu={mtu},romfile=");
    command.args(["-device", &card]);
    command
}
