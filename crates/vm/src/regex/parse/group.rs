//! How a group begins: its kind, its name, the flags it changes; and the count of groups before the parse.

use super::{Group, Open, Parser, Result};
use crate::regex::ast::{Direction, Wanted};
use crate::regex::flags::Flags;

impl Parser<'_> {
    /// Reads `(` and what says which kind of group it is.
    pub(super) fn group_opening(&mut self, way: u32) -> Result<Open> {
        let at = self.pos;
        let mods = self.mods;
        self.pos += 1;
        if !self.eat(b'?') {
            let group = self.new_group();
            return self.open(Group::Capture(group), at, way, mods);
        }
        let kind = match self.peek() {
            Some(b':') => {
                self.pos += 1;
                Group::Plain
            }
            Some(b'=') => {
                self.pos += 1;
                Group::Look(Direction::Forward, Wanted::Match)
            }
            Some(b'!') => {
                self.pos += 1;
                Group::Look(Direction::Forward, Wanted::NoMatch)
            }
            Some(b'<') => {
                self.pos += 1;
                if self.eat(b'=') {
                    Group::Look(Direction::Backward, Wanted::Match)
                } else if self.eat(b'!') {
                    Group::Look(Direction::Backward, Wanted::NoMatch)
                } else {
                    let name = self.group_name()?;
                    let group = self.new_group();
                    self.name_group(name, group, way, at)?;
                    Group::Capture(group)
                }
            }
            Some(_) | None => {
                self.modifiers(at)?;
                Group::Plain
            }
        };
        self.open(kind, at, way, mods)
    }

    /// Reads `ims-ims:` and applies it; the group's closing brings the old flags back.
    fn modifiers(&mut self, at: usize) -> Result<()> {
        let (mut add, mut remove) = (Flags::NONE, Flags::NONE);
        let mut removing = false;
        loop {
            let flag = match self.peek() {
                Some(b'i') => Flags::IGNORE_CASE,
                Some(b'm') => Flags::MULTILINE,
                Some(b's') => Flags::DOT_ALL,
                Some(b'-') if !removing => {
                    removing = true;
                    self.pos += 1;
                    continue;
                }
                Some(b':') if add != remove => break,
                Some(_) | None => return Err(self.error_at("invalid group", at)),
            };
            if add.with(remove).has(flag) {
                return Err(self.error_at("invalid flag group", at));
            }
            if removing {
                remove = remove.with(flag);
            } else {
                add = add.with(flag);
            }
            self.pos += 1;
        }
        self.pos += 1;
        self.mods = self.mods.with(add).without(remove);
        Ok(())
    }

    /// Counts captures and looks for names, before the real parse: both decide what `\1` and `\k` mean.
    pub(super) fn survey(&mut self) {
        let mut at = 0;
        let mut brackets = 0u32;
        while let Some(&unit) = self.units.get(at) {
            at += 1;
            match u8::try_from(unit) {
                Ok(b'\\') => at += 1,
                // Only classes of `v` patterns nest.
                Ok(b'[') if brackets == 0 || self.sets => brackets += 1,
                Ok(b']') => brackets = brackets.saturating_sub(1),
                Ok(b'(') if brackets == 0 => {
                    let ahead = |offset: usize| self.units.get(at + offset).copied();
                    let name = ahead(0) == Some(u16::from(b'?'))
                        && ahead(1) == Some(u16::from(b'<'))
                        && ![Some(u16::from(b'=')), Some(u16::from(b'!'))].contains(&ahead(2));
                    self.named |= name;
                    if name || ahead(0) != Some(u16::from(b'?')) {
                        self.groups_in_pattern += 1;
                    }
                }
                Ok(_) | Err(_) => {}
            }
        }
        self.named |= self.unicode;
    }
}
