//! Python's pickles, read as data.
//!
//! A pickle is a program for a small stack machine that may call any function of Python. This reader has the opcodes
//! that build numbers, texts, tuples, lists and dictionaries, and of all functions only those with which `torch.save`
//! makes ordered dictionaries and tensors, which it does by itself. Every other opcode or function is refused by its
//! name.
//!
//! Values live in arenas and name each other by index, so that a pickle can be nested deeply without a deep recursion,
//! and can refer to one value many times without copies.

use std::collections::BTreeMap;

/// A value of a pickle. Indices are those of the arenas of [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// An integer of more than eight bytes.
    Long(&'a [u8]),
    Text(&'a str),
    Bytes,
    Tuple(usize),
    List(usize),
    Dict(usize),
    Function(Function<'a>),
    Storage(usize),
    Tensor(usize),
}

impl<'a> Value<'a> {
    /// A text.
    pub fn text(self) -> Option<&'a str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// A number.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    }
}

/// The functions and types that a pickle may name.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Function<'a> {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    /// The class of a storage of torch, such as `FloatStorage`.
    StorageType(&'a str),
}

/// The numbers of tensors: a key of the file.
#[derive(Clone, Copy, Debug)]
pub struct Storage<'a> {
    /// The name of its file.
    pub key: &'a str,
    /// Its class, such as `FloatStorage`.
    pub class: &'a str,
    /// The count of numbers that the pickle states.
    pub count: usize,
}

/// A tensor: a part of a storage.
#[derive(Clone, Debug)]
pub struct PickledTensor {
    /// Its storage.
    pub storage: usize,
    /// The number of the storage that is its first.
    pub offset: usize,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// The step of each dimension, in numbers.
    pub strides: Vec<usize>,
}

/// A pickle that was read.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Pickle<'a> {
    pub tuples: Vec<Vec<Value<'a>>>,
    pub lists: Vec<Vec<Value<'a>>>,
    pub dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    pub storages: Vec<Storage<'a>>,
    pub tensors: Vec<PickledTensor>,
}

impl<'a> Pickle<'a> {
    /// The items of a list or tuple.
    pub fn items(&self, value: Value<'a>) -> Option<&[Value<'a>]> {
        match value {
            Value::Tuple(tuple) => Some(&self.tuples[tuple]),
            Value::List(list) => Some(&self.lists[list]),
            _ => None,
        }
    }

    /// The keys and values of a dictionary.
    pub fn pairs(&self, value: Value<'a>) -> Option<&[(Value<'a>, Value<'a>)]> {
        if let Value::Dict(dict) = value { Some(&self.dicts[dict]) } else { None }
    }

    /// The value of a key of a dictionary.
    pub fn get(&self, dict: Value<'a>, key: &str) -> Option<Value<'a>> {
        self.pairs(dict)?.iter().find(|(known, _)| known.text() == Some(key)).map(|(_, value)| *value)
    }
}

/// Why a pickle is not read. The texts go on after "the pickle".
#[derive(Debug)]
pub enum Fault {
    /// It ends early, contradicts itself, or is of a kind that nobody writes for data.
    Damaged(String),
    /// It would run code.
    Code(String),
}

/// Reads the pickle at the start of some bytes. Returns its arenas, its value, and what comes after it.
///
/// # Errors
///
/// Bytes that are no pickle, and a pickle that would run code.
pub fn read(bytes: &[u8]) -> Result<(Pickle<'_>, Value<'_>, &[u8]), Fault> {
    let mut machine = Machine { rest: bytes, ..Machine::default() };
    let value = machine.run()?;
    Ok((machine.pickle, value, machine.rest))
}

#[derive(Default)]
struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Value<'a>>,
    marks: Vec<usize>,
    memo: BTreeMap<u32, Value<'a>>,
    pickle: Pickle<'a>,
}

fn cut_short() -> Fault {
    Fault::Damaged("is cut short".into())
}

fn contradiction(opcode: &str) -> Fault {
    Fault::Damaged(format!("has {opcode} where it makes no sense"))
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<Value<'a>, Fault> {
        loop {
            let opcode = self.take(1)?[0];
            match opcode {
                // PROTO, FRAME
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'.' => return self.pop("STOP"),
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop("POP")?),
                b'1' => drop(self.pop_mark("POP_MARK")?),
                b'2' => {
                    let top = self.top("DUP")?;
                    self.stack.push(top);
                }
                b'N' => self.stack.push(Value::None),
                0x88 => self.stack.push(Value::Bool(true)),
                0x89 => self.stack.push(Value::Bool(false)),
                b'J' => {
                    let number = i32::from_le_bytes(self.array()?);
                    self.stack.push(Value::Int(number.into()));
                }
                b'K' => {
                    let number = self.take(1)?[0];
                    self.stack.push(Value::Int(number.into()));
                }
                b'M' => {
                    let number = u16::from_le_bytes(self.array()?);
                    self.stack.push(Value::Int(number.into()));
                }
                0x8a => {
                    let length = self.take(1)?[0];
                    let number = self.take(length.into())?;
                    self.stack.push(long(number));
                }
                b'G' => {
                    let number = f64::from_be_bytes(self.array()?);
                    self.stack.push(Value::Float(number));
                }
                b'X' => {
                    let length = u32::from_le_bytes(self.array()?);
                    self.text(length as usize)?;
                }
                0x8c => {
                    let length = self.take(1)?[0];
                    self.text(length.into())?;
                }
                // SHORT_BINSTRING and BINSTRING: the texts of Python 2.
                b'U' => {
                    let length = self.take(1)?[0];
                    self.text(length.into())?;
                }
                b'T' => {
                    let length = u32::from_le_bytes(self.array()?);
                    self.text(length as usize)?;
                }
                b'C' => {
                    let length = self.take(1)?[0];
                    self.take(length.into())?;
                    self.stack.push(Value::Bytes);
                }
                b'B' => {
                    let length = u32::from_le_bytes(self.array()?);
                    self.take(length as usize)?;
                    self.stack.push(Value::Bytes);
                }
                b')' => self.push_tuple(vec![]),
                b't' => {
                    let items = self.pop_mark("TUPLE")?;
                    self.push_tuple(items);
                }
                0x85..=0x87 => {
                    let count = usize::from(opcode - 0x84);
                    let start = self.stack.len().checked_sub(count).ok_or_else(|| contradiction("TUPLE"))?;
                    let items = self.stack.split_off(start);
                    self.push_tuple(items);
                }
                b']' => self.push_list(vec![]),
                b'l' => {
                    let items = self.pop_mark("LIST")?;
                    self.push_list(items);
                }
                b'a' => {
                    let item = self.pop("APPEND")?;
                    self.list("APPEND")?.push(item);
                }
                b'e' => {
                    let mut items = self.pop_mark("APPENDS")?;
                    self.list("APPENDS")?.append(&mut items);
                }
                b'}' => self.push_dict(vec![]),
                b'd' => {
                    let items = self.pop_mark("DICT")?;
                    self.push_dict(pairs(&items));
                }
                b's' => {
                    let value = self.pop("SETITEM")?;
                    let key = self.pop("SETITEM")?;
                    self.dict("SETITEM")?.push((key, value));
                }
                b'u' => {
                    let items = self.pop_mark("SETITEMS")?;
                    self.dict("SETITEMS")?.append(&mut pairs(&items));
                }
                b'q' => {
                    let place = self.take(1)?[0];
                    self.remember(place.into(), "BINPUT")?;
                }
                b'r' => {
                    let place = u32::from_le_bytes(self.array()?);
                    self.remember(place, "LONG_BINPUT")?;
                }
                0x94 => self.remember(self.memo.len() as u32, "MEMOIZE")?,
                b'h' => {
                    let place = self.take(1)?[0];
                    self.recall(place.into())?;
                }
                b'j' => {
                    let place = u32::from_le_bytes(self.array()?);
                    self.recall(place)?;
                }
                b'c' => {
                    let module = self.line()?;
                    let name = self.line()?;
                    self.function(module, name, "GLOBAL")?;
                }
                0x93 => match (self.pop("STACK_GLOBAL")?, self.pop("STACK_GLOBAL")?) {
                    (Value::Text(name), Value::Text(module)) => {
                        self.function(module, name, "STACK_GLOBAL")?
                    }
                    _ => return Err(contradiction("STACK_GLOBAL")),
                },
                b'Q' => {
                    let id = self.pop("BINPERSID")?;
                    let storage = self.storage(id).ok_or_else(|| contradiction("BINPERSID"))?;
                    self.pickle.storages.push(storage);
                    self.stack.push(Value::Storage(self.pickle.storages.len() - 1));
                }
                b'R' => self.call()?,
                b'b' => self.set_state()?,
                other => return Err(self.refuse(other)),
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn text(&mut self, length: usize) -> Result<(), Fault> {
        let text = self.take(length)?;
        // The texts of Python 2 may be bytes; what is not UTF-8 cannot name anything that is read here.
        self.stack.push(std::str::from_utf8(text).map_or(Value::Bytes, Value::Text));
        Ok(())
    }

    /// The bytes up to the end of the line.
    fn line(&mut self) -> Result<&'a str, Fault> {
        let end = self.rest.iter().position(|&byte| byte == b'\n').ok_or_else(cut_short)?;
        let line = &self.take(end + 1)?[..end];
        std::str::from_utf8(line).map_err(|_| Fault::Damaged("names a function that is no text".into()))
    }

    fn pop(&mut self, opcode: &str) -> Result<Value<'a>, Fault> {
        // What stands before an open mark belongs to what is being built there.
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(contradiction(opcode));
        }
        self.stack.pop().ok_or_else(|| contradiction(opcode))
    }

    fn pop_mark(&mut self, opcode: &str) -> Result<Vec<Value<'a>>, Fault> {
        let mark = self.marks.pop().filter(|&mark| mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or_else(|| contradiction(opcode))?))
    }

    fn top(&self, opcode: &str) -> Result<Value<'a>, Fault> {
        self.stack.last().copied().ok_or_else(|| contradiction(opcode))
    }

    fn push_tuple(&mut self, items: Vec<Value<'a>>) {
        self.pickle.tuples.push(items);
        self.stack.push(Value::Tuple(self.pickle.tuples.len() - 1));
    }

    fn push_list(&mut self, items: Vec<Value<'a>>) {
        self.pickle.lists.push(items);
        self.stack.push(Value::List(self.pickle.lists.len() - 1));
    }

    fn push_dict(&mut self, items: Vec<(Value<'a>, Value<'a>)>) {
        self.pickle.dicts.push(items);
        self.stack.push(Value::Dict(self.pickle.dicts.len() - 1));
    }

    fn list(&mut self, opcode: &str) -> Result<&mut Vec<Value<'a>>, Fault> {
        match self.top(opcode)? {
            Value::List(list) => Ok(&mut self.pickle.lists[list]),
            _ => Err(contradiction(opcode)),
        }
    }

    fn dict(&mut self, opcode: &str) -> Result<&mut Vec<(Value<'a>, Value<'a>)>, Fault> {
        match self.top(opcode)? {
            Value::Dict(dict) => Ok(&mut self.pickle.dicts[dict]),
            _ => Err(contradiction(opcode)),
        }
    }

    fn remember(&mut self, place: u32, opcode: &str) -> Result<(), Fault> {
        let top = self.top(opcode)?;
        self.memo.insert(place, top);
        Ok(())
    }

    fn recall(&mut self, place: u32) -> Result<(), Fault> {
        let value = self.memo.get(&place).ok_or_else(|| contradiction("BINGET"))?;
        self.stack.push(*value);
        Ok(())
    }

    fn function(&mut self, module: &'a str, name: &'a str, opcode: &str) -> Result<(), Fault> {
        let function = match (module, name) {
            ("collections", "OrderedDict") => Function::OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2" | "_rebuild_tensor") => Function::RebuildTensor,
            ("torch._utils", "_rebuild_parameter") => Function::RebuildParameter,
            ("torch", class) if class.ends_with("Storage") => Function::StorageType(class),
            _ => {
                // A hostile name is shown, and stays short and on one line.
                let shown: String = format!("{module}.{name}").escape_debug().take(80).collect();
                return Err(Fault::Code(format!("would run code: the opcode {opcode} asks for {shown}")));
            }
        };
        self.stack.push(Value::Function(function));
        Ok(())
    }

    fn refuse(&self, opcode: u8) -> Fault {
        let name = match opcode {
            b'i' => "INST",
            b'o' => "OBJ",
            0x81 => "NEWOBJ",
            0x92 => "NEWOBJ_EX",
            0x82..=0x84 => "EXT",
            b'P' => "PERSID",
            0x97 => "NEXT_BUFFER",
            other => return Fault::Damaged(format!("has the opcode {other:#04x}, which builds no data")),
        };
        Fault::Code(format!("would run code: it has the opcode {name}"))
    }

    fn call(&mut self) -> Result<(), Fault> {
        let (arguments, function) = (self.pop("REDUCE")?, self.pop("REDUCE")?);
        let (Value::Tuple(arguments), Value::Function(function)) = (arguments, function) else {
            return Err(contradiction("REDUCE"));
        };
        let arguments = &self.pickle.tuples[arguments];
        match (function, &arguments[..]) {
            (Function::OrderedDict, []) => self.push_dict(vec![]),
            (Function::OrderedDict, &[Value::List(list)]) => {
                let pair = |item: &Value<'a>| match *self.pickle.items(*item)? {
                    [key, value] => Some((key, value)),
                    _ => None,
                };
                let items: Option<Vec<_>> = self.pickle.lists[list].iter().map(pair).collect();
                self.push_dict(items.ok_or_else(|| contradiction("REDUCE"))?);
            }
            (
                Function::RebuildTensor,
                &[
                    Value::Storage(storage),
                    Value::Int(offset),
                    Value::Tuple(shape),
                    Value::Tuple(strides),
                    ..,
                ],
            ) => {
                let sizes = |tuple: usize| -> Option<Vec<usize>> {
                    let size = |value: &Value| match *value {
                        Value::Int(size) => usize::try_from(size).ok(),
                        _ => None,
                    };
                    self.pickle.tuples[tuple].iter().map(size).collect()
                };
                let tensor = usize::try_from(offset).ok().zip(sizes(shape).zip(sizes(strides)));
                let (offset, (shape, strides)) = tensor.ok_or_else(|| contradiction("REDUCE"))?;
                self.pickle.tensors.push(PickledTensor { storage, offset, shape, strides });
                self.stack.push(Value::Tensor(self.pickle.tensors.len() - 1));
            }
            (Function::RebuildParameter, &[tensor @ Value::Tensor(_), ..]) => self.stack.push(tensor),
            _ => return Err(contradiction("REDUCE")),
        }
        Ok(())
    }

    /// A dictionary may get attributes, such as the `_metadata` of a state, which nothing here needs.
    fn set_state(&mut self) -> Result<(), Fault> {
        self.pop("BUILD")?;
        match self.top("BUILD")? {
            Value::Dict(_) => Ok(()),
            _ => Err(Fault::Code(
                "would run code: the opcode BUILD changes an object that is no dictionary".into(),
            )),
        }
    }

    /// The storage that a persistent id describes: `("storage", type, key, device, count, …)`.
    fn storage(&self, id: Value<'a>) -> Option<Storage<'a>> {
        let Value::Tuple(id) = id else { return None };
        match self.pickle.tuples[id][..] {
            [
                Value::Text("storage"),
                Value::Function(Function::StorageType(class)),
                Value::Text(key),
                _,
                Value::Int(count),
                ..,
            ] => Some(Storage { key, class, count: usize::try_from(count).ok()? }),
            _ => None,
        }
    }
}

fn pairs<'a>(items: &[Value<'a>]) -> Vec<(Value<'a>, Value<'a>)> {
    items.as_chunks::<2>().0.iter().map(|&[key, value]| (key, value)).collect()
}

/// An integer of little-endian bytes.
fn long(bytes: &[u8]) -> Value<'_> {
    if bytes.len() > 8 {
        return Value::Long(bytes);
    }
    let sign = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut number = [sign; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    Value::Int(i64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pickle.dumps({'names': ['a', 'b', 'a'], 'box': (1.5, -2, 70000, 2**40), 'none': None}, 2)`, and the same with
    /// protocol 4, printed by Python 3.11.
    const TWO: &[u8] = b"\x80\x02}q\x00(X\x05\x00\x00\x00namesq\x01]q\x02(X\x01\x00\x00\x00aq\x03X\x01\x00\x00\x00bq\x04h\x03eX\x03\x00\x00\x00boxq\x05(G?\xf8\x00\x00\x00\x00\x00\x00J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01tq\x06X\x04\x00\x00\x00noneq\x07Nu.";
    const FOUR: &[u8] = b"\x80\x04\x95G\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x05names\x94]\x94(\x8c\x01a\x94\x8c\x01b\x94h\x03e\x8c\x03box\x94(G?\xf8\x00\x00\x00\x00\x00\x00J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01t\x94\x8c\x04none\x94Nu.";

    #[test]
    fn plain_data_is_read() {
        for bytes in [TWO, FOUR] {
            let (pickle, root, rest) = read(bytes).unwrap();
            let items = |key| pickle.items(pickle.get(root, key).unwrap()).unwrap().iter();
            let names: Vec<&str> = items("names").filter_map(|name| name.text()).collect();
            assert_eq!((names, rest), (vec!["a", "b", "a"], &b""[..]));
            let numbers: Vec<f64> = items("box").filter_map(|number| number.number()).collect();
            assert_eq!(numbers, [1.5, -2.0, 70_000.0, 1_099_511_627_776.0]);
            assert_eq!((pickle.get(root, "none"), pickle.get(root, "other")), (Some(Value::None), None));
        }
    }

    #[test]
    fn code_is_refused_and_never_run() {
        // `os.system("true")`.
        let Err(Fault::Code(why)) = read(b"cos\nsystem\n(S'true'\ntR.") else { panic!("it is read") };
        assert_eq!(why, "would run code: the opcode GLOBAL asks for os.system");
    }

    #[test]
    fn a_pickle_that_is_cut_is_refused() {
        for bytes in [TWO, FOUR] {
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).is_err(), "cut at {length}");
            }
        }
    }
}
