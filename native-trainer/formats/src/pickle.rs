//! Python pickles of plain data: numbers, texts, lists, tuples and dictionaries. Nothing is executed.
//!
//! A pickle is a program for a small stack machine. This reader has only the opcodes that build plain values, and refuses
//! those that name a function or a class. Values stand in a list and refer to each other by number, as a pickle may share
//! a value and nest values deeply.

use akin_base::problem::problem;
use anyhow::Result;

/// The values of a pickle.
#[derive(Debug, Default)]
pub struct Pickle {
    values: Vec<Value>,
    root: usize,
}

#[derive(Debug)]
enum Value {
    None,
    Bool,
    Number(f64),
    Text(String),
    List(Vec<usize>),
    /// Keys and values in turn.
    Dict(Vec<usize>),
}

/// A value inside a pickle.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    pickle: &'a Pickle,
    number: usize,
}

impl<'a> Item<'a> {
    fn value(self) -> &'a Value {
        &self.pickle.values[self.number]
    }

    fn item(self, number: usize) -> Self {
        Self { number, ..self }
    }

    /// The value of a key of a dictionary.
    pub fn get(self, key: &str) -> Option<Self> {
        let Value::Dict(pairs) = self.value() else { return None };
        let is_key =
            |pair: &&[usize; 2]| matches!(&self.pickle.values[pair[0]], Value::Text(text) if text == key);
        pairs.as_chunks().0.iter().find(is_key).map(|pair| self.item(pair[1]))
    }

    /// The items of a list or tuple.
    pub fn list(self) -> Option<Vec<Self>> {
        let Value::List(items) = self.value() else { return None };
        Some(items.iter().map(|&number| self.item(number)).collect())
    }

    /// A text.
    pub fn text(self) -> Option<&'a str> {
        if let Value::Text(text) = self.value() { Some(text) } else { None }
    }

    /// A number.
    pub fn number(self) -> Option<f64> {
        if let Value::Number(number) = self.value() { Some(*number) } else { None }
    }
}

impl Pickle {
    /// The value of the whole pickle.
    pub fn root(&self) -> Item<'_> {
        Item { pickle: self, number: self.root }
    }

    /// Reads a pickle of protocol 0 to 5 without texts of protocol 0.
    ///
    /// # Errors
    ///
    /// Bytes that are no pickle, and a pickle that asks for a function or a class.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut machine =
            Machine { rest: bytes, pickle: Self::default(), stack: vec![], marks: vec![], memo: vec![] };
        machine.run()?;
        Ok(machine.pickle)
    }
}

struct Machine<'a> {
    rest: &'a [u8],
    pickle: Pickle,
    stack: Vec<usize>,
    marks: Vec<usize>,
    /// Values by their number in the memo; a value is stored before its number is used.
    memo: Vec<(u32, usize)>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<()> {
        loop {
            let opcode = self.take(1)?[0];
            match opcode {
                // PROTO and FRAME say nothing that is needed here.
                0x80 => _ = self.take(1)?,
                0x95 => _ = self.take(8)?,
                b'(' => self.marks.push(self.stack.len()),
                b'.' => {
                    self.pickle.root = self.pop()?;
                    return Ok(());
                }
                b'N' => self.push(Value::None),
                0x88 | 0x89 => self.push(Value::Bool),
                b'J' => {
                    let number = i32::from_le_bytes(self.array()?);
                    self.push(Value::Number(number.into()));
                }
                b'K' => {
                    let [number] = self.array()?;
                    self.push(Value::Number(number.into()));
                }
                b'M' => {
                    let number = u16::from_le_bytes(self.array()?);
                    self.push(Value::Number(number.into()));
                }
                0x8a => self.long()?,
                b'G' => {
                    let number = f64::from_be_bytes(self.array()?);
                    self.push(Value::Number(number));
                }
                0x8c | b'U' => {
                    let [length] = self.array()?;
                    self.text(length.into())?;
                }
                b'X' | b'T' => {
                    let length = u32::from_le_bytes(self.array()?);
                    self.text(length as usize)?;
                }
                b']' => self.push(Value::List(vec![])),
                b')' => self.push(Value::List(vec![])),
                b'}' => self.push(Value::Dict(vec![])),
                b'l' | b't' => {
                    let items = self.since_mark()?;
                    self.push(Value::List(items));
                }
                0x85..=0x87 => {
                    let count = usize::from(opcode - 0x84);
                    let start =
                        self.stack.len().checked_sub(count).ok_or_else(|| damaged("its stack is empty"))?;
                    let items = self.stack.split_off(start);
                    self.push(Value::List(items));
                }
                b'a' => {
                    let item = self.pop()?;
                    self.extend(vec![item], false)?;
                }
                b'e' => {
                    let items = self.since_mark()?;
                    self.extend(items, false)?;
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.extend(vec![key, value], true)?;
                }
                b'u' => {
                    let items = self.since_mark()?;
                    self.extend(items, true)?;
                }
                b'q' => {
                    let [number] = self.array()?;
                    self.remember(number.into())?;
                }
                b'r' => {
                    let number = u32::from_le_bytes(self.array()?);
                    self.remember(number)?;
                }
                0x94 => {
                    let next = self.memo.len() as u32;
                    self.remember(next)?;
                }
                b'h' => {
                    let [number] = self.array()?;
                    self.recall(number.into())?;
                }
                b'j' => {
                    let number = u32::from_le_bytes(self.array()?);
                    self.recall(number)?;
                }
                b'c' | b'i' | b'o' | b'R' | b'b' | 0x81 | 0x92 | 0x93 | b'P' | b'Q' => {
                    return Err(problem(
                        "the pickle would run code: it holds an array or an object, and only plain data is read",
                        "use the MATLAB file (.mat) that is published beside it",
                    ));
                }
                other => return Err(damaged(&format!("it has the opcode {other:#04x}"))),
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| damaged("it ends early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| damaged("it ends early"))
    }

    fn push(&mut self, value: Value) {
        self.pickle.values.push(value);
        self.stack.push(self.pickle.values.len() - 1);
    }

    fn pop(&mut self) -> Result<usize> {
        let above_mark = self.marks.last().is_none_or(|&mark| self.stack.len() > mark);
        self.stack.pop().filter(|_| above_mark).ok_or_else(|| damaged("its stack is empty"))
    }

    fn since_mark(&mut self) -> Result<Vec<usize>> {
        let mark = self.marks.pop().filter(|&mark| mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or_else(|| damaged("a mark is missing"))?))
    }

    fn text(&mut self, length: usize) -> Result<()> {
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.push(Value::Text(text));
        Ok(())
    }

    /// A whole number of a few bytes.
    fn long(&mut self) -> Result<()> {
        let [length] = self.array()?;
        let bytes = self.take(length.into())?;
        if bytes.len() > 8 {
            return Err(damaged("a number has more than eight bytes"));
        }
        let sign = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
        let mut all = [sign; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        self.push(Value::Number(i64::from_le_bytes(all) as f64));
        Ok(())
    }

    /// Adds items to the list, or pairs to the dictionary, on the top of the stack.
    fn extend(&mut self, items: Vec<usize>, pairs: bool) -> Result<()> {
        let target = self.stack.last().and_then(|&top| self.pickle.values.get_mut(top));
        match (target, pairs) {
            (Some(Value::List(list)), false) => list.extend(items),
            (Some(Value::Dict(dict)), true) if items.len().is_multiple_of(2) => dict.extend(items),
            _ => return Err(damaged("it adds to a value that is no list and no dictionary")),
        }
        Ok(())
    }

    fn remember(&mut self, number: u32) -> Result<()> {
        let top = *self.stack.last().ok_or_else(|| damaged("its stack is empty"))?;
        self.memo.push((number, top));
        Ok(())
    }

    fn recall(&mut self, number: u32) -> Result<()> {
        // Numbers are given in order, so that the place is nearly always the number.
        let at = self.memo.get(number as usize).filter(|(known, _)| *known == number);
        let found = at.or_else(|| self.memo.iter().rev().find(|(known, _)| *known == number));
        self.stack.push(found.ok_or_else(|| damaged("it asks for a value that it has not stored"))?.1);
        Ok(())
    }
}

fn damaged(why: &str) -> anyhow::Error {
    problem(format!("the pickle is damaged: {why}"), "copy the file again")
}

#[cfg(test)]
mod tests {
    use akin_base::problem::parts;

    use super::*;

    /// `pickle.dumps({'names': ['a', 'b', 'a'], 'box': (1.5, -2, 70000, 2**40), 'none': None}, 2)`, and the same with
    /// protocol 4, printed by Python 3.11.
    const TWO: &[u8] = b"\x80\x02}q\x00(X\x05\x00\x00\x00namesq\x01]q\x02(X\x01\x00\x00\x00aq\x03X\x01\x00\x00\x00bq\x04h\x03eX\x03\x00\x00\x00boxq\x05(G?\xf8\x00\x00\x00\x00\x00\x00J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01tq\x06X\x04\x00\x00\x00noneq\x07Nu.";
    const FOUR: &[u8] = b"\x80\x04\x95G\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x05names\x94]\x94(\x8c\x01a\x94\x8c\x01b\x94h\x03e\x8c\x03box\x94(G?\xf8\x00\x00\x00\x00\x00\x00J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01t\x94\x8c\x04none\x94Nu.";

    #[test]
    fn plain_data_is_read() {
        for bytes in [TWO, FOUR] {
            let pickle = Pickle::parse(bytes).unwrap();
            let names: Vec<&str> = pickle
                .root()
                .get("names")
                .unwrap()
                .list()
                .unwrap()
                .iter()
                .filter_map(|name| name.text())
                .collect();
            assert_eq!(names, ["a", "b", "a"]);
            let numbers: Vec<f64> = pickle
                .root()
                .get("box")
                .unwrap()
                .list()
                .unwrap()
                .iter()
                .filter_map(|item| item.number())
                .collect();
            assert_eq!(numbers, [1.5, -2.0, 70_000.0, 1_099_511_627_776.0]);
            assert!(
                pickle.root().get("none").unwrap().number().is_none() && pickle.root().get("other").is_none()
            );
        }
    }

    #[test]
    fn code_is_refused_and_never_run() {
        // `os.system("true")`.
        let (message, hint) = parts(&Pickle::parse(b"cos\nsystem\n(S'true'\ntR.").unwrap_err());
        assert!(message.contains("would run code") && hint.unwrap().contains(".mat"), "{message}");
    }

    #[test]
    fn a_pickle_that_is_cut_is_refused() {
        for bytes in [TWO, FOUR] {
            for length in 0..bytes.len() {
                assert!(Pickle::parse(&bytes[..length]).is_err(), "cut at {length}");
            }
        }
    }
}
