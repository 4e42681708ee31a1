"""Damage to files, the same for the same random generator: to bytes, to archives, to lines."""

import io
import json
import zipfile

import numpy as np

ODD_FIELDS = [
    *(b"nan", b"-inf", b"1e999", b"1_0", b"0x10", b"-0.0", b"1e3", b"-1", b"1" * 5000, b"", b"\0"),
    *(b"\xff", b"caf\xe9", "caf\u00e9".encode(), "\u0661".encode(), b"\xef\xbb\xbfu1"),
    b"pyg_recmetrics:no-item:1",
]


def damage_bytes(content, random):
    """Flips bits, cuts off, cuts out, repeats, overwrites or inserts bytes."""
    damaged = bytearray(content)
    start = random.randrange(len(content))
    end = min(start + random.choice([1, 2, 16, 200]), len(content))
    match random.choice(["flip", "cut off", "cut out", "repeat", "overwrite", "insert"]):
        case "flip":
            for _ in range(random.choice([1, 1, 1, 5])):
                damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        case "cut off":
            del damaged[start:]
        case "cut out":
            del damaged[start:end]
        case "repeat":
            damaged[start:start] = damaged[start:end]
        case "overwrite":
            damaged[start:end] = bytes([random.choice([0, 255])]) * (end - start)
        case "insert":
            damaged[start:start] = random.randbytes(end - start)
    return bytes(damaged)


def read_members(content):
    """The header and the arrays of an archive."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(str(arrays.pop("header"))), arrays


def write_members(header, arrays):
    """The bytes of an archive, whose checksums are right."""
    stream = io.BytesIO()
    np.savez_compressed(stream, header=np.array(json.dumps(header)), **arrays)
    return stream.getvalue()


def damage_archive(content, random):
    """Damages the members of an archive, of which each is valid by itself."""
    header, arrays = read_members(content)
    name, other = random.sample(sorted(arrays), 2)
    match random.choice(
        ["remove", "rename", "add", "retype", "reshape", "spoil", "header", "twice"]
    ):
        case "remove":
            del arrays[name]
        case "rename":
            arrays[random.choice([name + "x", other])] = arrays.pop(name)
        case "add":
            arrays[random.choice(["more", "ranked.more"])] = arrays[name]
        case "retype":
            arrays[name] = _retype(arrays[name], random)
        case "reshape":
            arrays[name] = _reshape(arrays[name], random)
        case "spoil":
            arrays[name] = _spoil(arrays[name], random)
        case "header":
            _damage_values(header, random)
        case "twice":
            return _with_second_member(content, f"{name}.npy", arrays[other])
    return write_members(header, arrays)


def _retype(array, random):
    dtypes = ["int8", "int32", "uint64", "float16", "float32", "bool", "U5", "S3", ">i8"]
    dtype = random.choice([dtype for dtype in dtypes if np.dtype(dtype) != array.dtype])
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _reshape(array, random):
    changes = [
        array[..., :-1] if array.size else np.ones(3, dtype=array.dtype),
        np.concatenate([array, array], axis=-1) if array.size else array[None],
        array[None],
        array.reshape(*array.shape, 1),
        array.ravel()[:0],
        np.array(1, dtype=array.dtype),
    ]
    return random.choice([change for change in changes if change.shape != array.shape])


def _spoil(array, random):
    """Sets an element to what no array of a result can hold."""
    if array.size == 0 or array.dtype.kind not in "if":
        return array[None]
    spoilt = array.copy()
    lowest = -(2**63) if array.dtype.itemsize == 8 else -1
    wrong = [lowest, -2] if array.dtype.kind == "i" else [np.nan, np.inf]
    spoilt.flat[random.randrange(spoilt.size)] = random.choice(wrong)
    return spoilt


def _damage_values(header, random):
    """Removes, adds or changes a value somewhere in nested dictionaries."""
    inside = header
    while True:
        key = random.choice(sorted(inside))
        if not (isinstance(inside[key], dict) and inside[key]) or random.random() < 0.2:
            break
        inside = inside[key]
    match random.choice(["remove", "add", "change"]):
        case "remove":
            del inside[key]
        case "add":
            inside[f"{key}2"] = inside[key]
        case "change":
            inside[key] = random.choice([-1.5, {"a": -1}, [[]], float("nan")])


def _with_second_member(content, name, array):
    """Adds a member of a name that is taken, which `zipfile` itself would warn about."""
    stream, member = io.BytesIO(content), io.BytesIO()
    np.lib.format.write_array(member, array)
    free = name[:-1] + "_"
    with zipfile.ZipFile(stream, "a") as file:
        file.writestr(free, member.getvalue())
    return stream.getvalue().replace(free.encode(), name.encode())


def damage_lines(content, random):
    """Damages the fields of lines, or bytes anywhere."""
    if random.random() < 0.5:
        return damage_bytes(content, random)
    lines = content.split(b"\n")
    index = random.randrange(len(lines) - 1)
    fields = lines[index].split(b" ")
    field = random.randrange(len(fields))
    match random.choice(["remove", "repeat", "change", "end", "swap", "double"]):
        case "remove":
            del fields[field]
        case "repeat":
            fields.insert(field, fields[field])
        case "change":
            fields[field] = random.choice(ODD_FIELDS)
        case "end":
            fields[-1] += random.choice([b"\r", b"\r\n", b"\n\n", b"\x0b", b"\x1c", b"\xc2\xa0"])
        case "swap":
            fields.reverse()
        case "double":
            lines.insert(index, lines[index])
    lines[index] = b" ".join(fields)
    return b"\n".join(lines)
