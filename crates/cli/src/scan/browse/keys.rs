//! What comes from the terminal.

use std::io;
use std::thread;
use std::time::Duration;

use crossterm::event::{
    self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};

use super::state::Key;

/// What comes from the terminal.
pub(super) enum Input {
    Key(Key),
    /// Escape and a key right behind it, which terminals send alike for the key with Alt.
    Escaped(Key),
    /// A change of its size, or something that does not matter.
    Other,
    /// Nothing for a while.
    Nothing,
}

/// Waits until the terminal has something to read, for a while. A change of its size ends the wait
/// as well. Returns whether there is something.
///
/// crossterm reads a terminal that has been hung up again and again, and so never comes back from a
/// wait in which that happens. So nothing is waited for there, and a terminal that is gone is not
/// given to it.
///
/// # Errors
///
/// If the terminal is gone.
#[cfg(unix)]
fn wait_for_terminal(wait: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = wait.try_into().map_err(io::Error::other)?;
    match poll(&mut terminal, Some(&wait)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if terminal[0].revents().intersects(gone) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone"));
    }
    Ok(terminal[0].revents().contains(PollFlags::IN))
}

/// As on Unix: a console is not hung up, so the wait is crossterm's.
#[cfg(not(unix))]
fn wait_for_terminal(wait: Duration) -> io::Result<bool> {
    event::poll(wait)
}

/// Whether crossterm has an event, if `readable` says that the terminal has something to read.
///
/// The system tells crossterm only once that there is input, because its `epoll` is edge-triggered.
/// If the size changes at the same moment, crossterm returns only that and forgets the input, so
/// keys would wait until the next key is typed. Setting the terminal's attributes to their current
/// values wakes the waiting threads, and so the system tells crossterm again.
#[cfg(unix)]
fn has_event(readable: bool) -> io::Result<bool> {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    let has_event = event::poll(Duration::ZERO)?;
    if has_event || !readable {
        return Ok(has_event);
    }
    let stdin = io::stdin();
    tcsetattr(&stdin, OptionalActions::Now, &tcgetattr(&stdin)?)?;
    event::poll(Duration::ZERO)
}

/// The console forgets nothing.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "a terminal may be gone when it is asked")]
fn has_event(readable: bool) -> io::Result<bool> {
    Ok(readable)
}

/// Whether the terminal is gone: hung up, for instance, by the end of the program that showed it.
pub(super) fn is_gone() -> bool {
    wait_for_terminal(Duration::ZERO).is_err()
}

/// Waits for the next input, for a while.
///
/// # Errors
///
/// If the terminal cannot be read, or is gone.
pub(super) fn input(wait: Duration) -> io::Result<Input> {
    // What was read with the last key may hold more of them, for which the terminal has nothing to
    // read any more.
    let readable = wait_for_terminal(Duration::ZERO)?;
    if !event::poll(Duration::ZERO)? {
        let readable = readable || wait_for_terminal(wait)?;
        if !has_event(readable)? {
            if readable {
                // It was not told again: not a loop without a pause.
                thread::sleep(wait);
            }
            return Ok(Input::Nothing);
        }
    }
    let KeyEvent { code, modifiers, kind, .. } = match event::read()? {
        Event::Key(key) => key,
        Event::Mouse(mouse) => {
            return Ok(match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => {
                    Input::Key(Key::Click(mouse.column, mouse.row))
                }
                MouseEventKind::ScrollUp => Input::Key(Key::Up),
                MouseEventKind::ScrollDown => Input::Key(Key::Down),
                _ => Input::Other,
            });
        }
        _ => return Ok(Input::Other),
    };
    if kind == KeyEventKind::Release {
        return Ok(Input::Other);
    }
    let key = match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char('z') if modifiers.contains(KeyModifiers::CONTROL) => Key::Suspend,
        KeyCode::Char('l') if modifiers.contains(KeyModifiers::CONTROL) => Key::Redraw,
        // Not what the letter alone does.
        KeyCode::Char(_) if modifiers.contains(KeyModifiers::CONTROL) => return Ok(Input::Other),
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        _ => return Ok(Input::Other),
    };
    // With Alt, keys that send no sequence of their own send an Escape before what they are.
    let escaped = matches!(key, Key::Char(_) | Key::Enter | Key::Backspace | Key::Tab);
    let escaped = escaped && modifiers.contains(KeyModifiers::ALT);
    Ok(if escaped { Input::Escaped(key) } else { Input::Key(key) })
}
