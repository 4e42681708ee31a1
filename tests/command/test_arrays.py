"""Files of arrays."""

import numpy as np
import pytest
import torch

from pyg_recmetrics.command.arrays import read_array, split_name
from tests.support.machines.missing_packages import hide_package

USERS, ITEMS = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("both.npz", my_user_factors=USERS, ItemFactors=ITEMS)
    np.save("users.npy", USERS)
    return tmp_path


@pytest.mark.parametrize("file", ["both.npz", "both.npz:my_user_factors", "users.npy"])
def test_an_array_is_found(file):
    assert np.array_equal(read_array(file, "user"), USERS)


def test_the_word_is_looked_for_in_any_case():
    assert np.array_equal(read_array("both.npz", "item"), ITEMS)


def test_an_array_in_a_file_of_its_own_stays_there():
    assert isinstance(read_array("users.npy", "user"), np.memmap)


def test_tensors_of_any_precision_are_read():
    torch_files = pytest.importorskip("safetensors.torch")
    table = torch.arange(6).reshape(3, 2).bfloat16()
    torch_files.save_file({"user.weight": table, "other": table + 1}, "both.safetensors")
    assert read_array("both.safetensors", "user").equal(table)
    assert read_array("both.safetensors:other", "user").equal(table + 1)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("a.npz:b", ("a.npz", "b")),
        ("a.safetensors:b.c", ("a.safetensors", "b.c")),
        ("c:a.npz", ("c:a.npz", None)),
        ("a.npy", ("a.npy", None)),
    ],
)
def test_a_name_stands_behind_a_colon(file, expected):
    path, name = split_name(file)
    assert (str(path), name) == expected


def sparse():
    np.savez("bad.npz", indptr=[0, 1], indices=[0], data=[1.0], shape=[1, 1])


def objects():
    np.savez("bad.npz", np.array([{}], dtype=object))


def texts():
    np.savez("bad.npz", np.array([1j]))


def several():
    np.savez("bad.npz", a=USERS, b=USERS)


def damaged():
    with open("bad.npz", "wb") as file:
        file.write(b"PK\x03\x04 and no more")


def no_archive():
    with open("bad.npz", "w") as file:
        file.write("user,item")


def renamed():
    with open("bad.npz", "wb") as file:
        np.save(file, USERS)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (sparse, r"bad.npz: a sparse matrix does not say how the other items are ranked"),
        (objects, r"bad.npz: the file needs to hold numbers \(got objects of Python"),
        (texts, r"bad.npz: the array needs to hold numbers \(got complex128\)"),
        (several, r"bad.npz:NAME needs to say which array is meant \(got a, b\)"),
        (damaged, r"bad.npz: the file is damaged"),
        (no_archive, r"bad.npz: the file needs to be an archive of arrays, as numpy.savez"),
        (renamed, r"bad.npz: the file needs to be an archive of arrays, as numpy.savez"),
    ],
)
def test_what_cannot_be_read_is_told(write, message):
    write()
    with pytest.raises(ValueError, match=message):
        read_array("bad.npz", "user")


def test_an_unknown_name_is_told():
    with pytest.raises(ValueError, match=r"both.npz: there is no array 'x' \(got \['my_user_fac"):
        read_array("both.npz:x", "user")


def test_damaged_safetensors_are_told():
    pytest.importorskip("safetensors")
    with open("bad.safetensors", "w") as file:
        file.write("no tensors")
    with pytest.raises(ValueError, match=r"bad.safetensors: the file needs to be safetensors"):
        read_array("bad.safetensors", "user")


def test_without_safetensors_the_error_says_what_to_install(monkeypatch):
    hide_package(monkeypatch, "safetensors")
    open("a.safetensors", "w").close()
    with pytest.raises(ImportError, match=r"'a.safetensors' needs safetensors: .*\[all\]'"):
        read_array("a.safetensors", "user")
