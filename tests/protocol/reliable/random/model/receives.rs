//! What must come of receives.

use doorbell_core::nic::{Attachment, Completion, Done, Failure, Memory};

use super::super::memory::Image;
use super::super::message::What;
use super::{Flow, OLD, cause_of, ensure, same_kind};

impl Flow {
    /// A completion of a receive. How many messages are known to have arrived by it.
    pub fn receive_completed(
        &mut self,
        receive: usize,
        completion: &Completion,
        landing: &mut Image,
    ) -> Result<usize, String> {
        let next = self.received + self.receives_failed;
        ensure!(
            receive == next && receive < self.receives_posted,
            "receive {receive} completed, while {next} is next of {}",
            self.receives_posted
        );
        let (kind, room) = self.landing(receive);
        ensure!(
            same_kind(kind, &completion.memory),
            "receive {receive} into {kind:?} came back as {completion:?}"
        );
        let capacity = match &completion.memory {
            Memory::Buf(buf) => buf.capacity(),
            _ => room,
        };
        ensure!(capacity == room, "a buffer of {room} came back with {capacity}");
        match (completion.outcome, self.receive_failed) {
            (Ok(_), Some(failed)) => Err(format!("receive {receive} succeeded behind {failed:?}")),
            (Ok(done), None) => self.received(receive, done, completion, landing),
            (Err(failure), first) => {
                ensure!(
                    first.is_none_or(|first| failure == Failure::Flushed(cause_of(first))),
                    "receive {receive} behind {first:?}: {failure:?}"
                );
                if let Memory::Buf(buf) = &completion.memory {
                    let old = OLD.len().min(room);
                    ensure!(buf.len() == old, "{completion:?} should have {old} bytes");
                }
                ensure!(
                    completion.len == 0 && completion.attached == Attachment::Nothing,
                    "{completion:?}"
                );
                self.receive_failed.get_or_insert(failure);
                self.receives_failed += 1;
                Ok(0)
            }
        }
    }

    fn received(
        &mut self,
        receive: usize,
        done: Done,
        completion: &Completion,
        landing: &mut Image,
    ) -> Result<usize, String> {
        let index = self.takers.get(receive).copied();
        let index = index.filter(|&index| index < self.posted);
        let Some(index) = index else {
            return Err(format!("receive {receive} completed, and nothing was sent"));
        };
        let message = self.message(index);
        let (len, attached) = (message.len, self.attachment(index));
        ensure!(!self.is_wrong(index), "{message:?} was received, which is wrong");
        ensure!(
            completion.len as usize == len && completion.attached == attached,
            "message {index} of {len} bytes with {attached:?} came as {completion:?}"
        );
        let write = message.what != What::Send;
        let expected = if write { Done::ReceivedWrite } else { Done::Received };
        ensure!(done == expected, "message {index} was {done:?}");
        let content = if write { &[] } else { self.content(index) };
        match &completion.memory {
            Memory::Buf(buf) if write => {
                let old = &OLD[..OLD.len().min(buf.capacity())];
                ensure!(**buf == *old, "the receive of write {index} was changed");
            }
            Memory::Buf(buf) => {
                ensure!(**buf == *content, "message {index} arrived with other bytes");
            }
            _ if write => {}
            _ => {
                let pieces = &self.landings[receive];
                let (now, _) = landing.gather(pieces);
                ensure!(
                    now[..content.len()] == *content,
                    "message {index} arrived with other bytes in its segments"
                );
                landing.expect(pieces, content);
            }
        }
        self.received += 1;
        Ok(index + 1)
    }
}
