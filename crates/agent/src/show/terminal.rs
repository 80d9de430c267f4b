//! The terminal of a live table: single key presses, and the alternate screen.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Stdin, Stdout, Write};
use std::time::Duration;

/// Escape sequences that begin and end the mode of a live table: alternate screen, hidden cursor, no line wrap.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Assumed lines and columns of a terminal that does not report its size.
const USUAL_SIZE: (usize, usize) = (24, 80);

/// The terminal in the mode of a live table, until this is dropped.
pub struct Terminal {
    input: Stdin,
    output: Stdout,
    before: Termios,
}

impl Terminal {
    /// Sets up the terminal; `None` if standard input or output is not a terminal.
    ///
    /// # Errors
    /// If the terminal cannot be set up.
    pub fn take() -> io::Result<Option<Terminal>> {
        let (input, output) = (io::stdin(), io::stdout());
        if !isatty(&input) || !isatty(&output) {
            return Ok(None);
        }
        let before = tcgetattr(&input)?;
        let mut modes = before.clone();
        // Ctrl-C arrives as a key, so that the screen can be restored first.
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(&input, OptionalActions::Now, &modes)?;
        let mut terminal = Terminal { input, output, before };
        terminal.output.write_all(ENTER.as_bytes())?;
        Ok(Some(terminal))
    }

    /// Returns the number of lines and columns.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(&self.output) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
            _ => USUAL_SIZE,
        }
    }

    /// Replaces the screen's content; cuts what does not fit. `bold` is the index of the highlighted line.
    ///
    /// # Errors
    /// If the terminal is closed.
    pub fn show(&mut self, lines: &[String], bold: usize) -> io::Result<()> {
        let (rows, columns) = self.size();
        let mut screen = String::from("\x1b[H");
        for (at, line) in lines.iter().take(rows).enumerate() {
            let line: String = line.chars().take(columns).collect();
            let (on, off) = if at == bold { ("\x1b[7m", "\x1b[0m") } else { ("", "") };
            let end = if at + 1 == rows { "" } else { "\r\n" };
            screen += &format!("{on}{line}{off}\x1b[K{end}");
        }
        screen += "\x1b[J";
        self.output.write_all(screen.as_bytes())?;
        self.output.flush()
    }

    /// Waits for a key; `None` after the timeout or a signal. The end of the input counts as Ctrl-D.
    ///
    /// # Errors
    /// If the terminal is closed.
    pub fn key(&mut self, patience: Duration) -> io::Result<Option<char>> {
        let mut inputs = [PollFd::new(&self.input, PollFlags::IN)];
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut inputs, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut key = [0_u8];
        // Without std's buffer, in which `poll` would not see keys.
        let count = rustix::io::read(&self.input, &mut key)?;
        Ok(Some(if count == 0 { '\x04' } else { char::from(key[0]) }))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.output.write_all(LEAVE.as_bytes()).and_then(|()| self.output.flush());
        let _ = tcsetattr(&self.input, OptionalActions::Now, &self.before);
    }
}
