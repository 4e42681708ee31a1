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
    """Flips bits, cuts off, repeats or overwrites bytes."""
    damaged = bytearray(content)
    start = random.randrange(len(content))
    end = min(start + random.choice([1, 2, 16, 200]), len(content))
    match random.choice(["flip", "cut off", "repeat", "overwrite"]):
        case "flip":
            for _ in range(random.choice([1, 1, 1, 5])):
                damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        case "cut off":
            del damaged[start:]
        case "repeat":
            damaged[start:start] = damaged[start:end]
        case "overwrite":
            damaged[start:end] = bytes([random.choice([0, 255])]) * (end - start)
    return bytes(damaged)


def read_members(content):
    """The header and the arrays of an archive, among them its checksum."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(str(arrays.pop("header"))), arrays


def write_members(header, arrays):
    """The bytes of an archive, of which the checksums of zip are right."""
    stream = io.BytesIO()
    np.savez_compressed(stream, header=np.array(json.dumps(header)), **arrays)
    return stream.getvalue()


def damage_archive(content, random):
    """Changes the members of an archive, each of which is valid by itself."""
    header, arrays = read_members(content)
    name, other = random.sample(sorted(arrays), 2)
    match random.choice(["remove", "rename", "change", "reshape", "header", "twice"]):
        case "remove":
            del arrays[name]
        case "rename":
            arrays[random.choice([name + "x", other])] = arrays.pop(name)
        case "change":
            changed = bytearray(arrays[name].tobytes() or b"?")
            changed[random.randrange(len(changed))] ^= 1
            arrays[name] = np.frombuffer(changed, np.uint8)
            if arrays[other].nbytes == len(changed):
                arrays[name] = arrays[name].view(arrays[other].dtype)
        case "reshape":
            arrays[name] = arrays[name][None]
        case "header":
            header["fields"][random.choice(["more", *header["fields"]])] = random.choice([0, [[]]])
        case "twice":
            return _with_second_member(content, f"{name}.npy", arrays[other])
    return write_members(header, arrays)


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
