//! What comes from the terminal.

use std::io;
use std::time::Duration;

use ratatui_crossterm::crossterm::event::{
    self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};

use super::state::Key;

/// What comes from the terminal.
pub(super) enum Input {
    Key(Key),
    Resize,
    /// Nothing for a while, or nothing that matters.
    Nothing,
}

/// Waits for the next input, for a while.
///
/// # Errors
///
/// If the terminal cannot be read.
pub(super) fn input(wait: Duration) -> io::Result<Input> {
    if !event::poll(wait)? {
        return Ok(Input::Nothing);
    }
    let KeyEvent { code, modifiers, kind, .. } = match event::read()? {
        Event::Key(key) => key,
        Event::Resize(..) => return Ok(Input::Resize),
        Event::Mouse(mouse) => {
            return Ok(match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => {
                    Input::Key(Key::Click(mouse.column, mouse.row))
                }
                MouseEventKind::ScrollUp => Input::Key(Key::Up),
                MouseEventKind::ScrollDown => Input::Key(Key::Down),
                _ => Input::Nothing,
            });
        }
        _ => return Ok(Input::Nothing),
    };
    if kind == KeyEventKind::Release {
        return Ok(Input::Nothing);
    }
    Ok(Input::Key(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
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
        _ => return Ok(Input::Nothing),
    }))
}
