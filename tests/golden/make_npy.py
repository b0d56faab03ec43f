"""Writes npy.inc: files as numpy writes them, one for every dtype and byte order that can be read, in C and Fortran order.
Run: python3 tests/golden/make_npy.py > tests/golden/npy.inc"""
import io

import numpy as np


def c_string(data):
    return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data)


NUMBERS = {"f": [0.5, -1.25, 1e-7, 3.0, -65504.0, np.inf], "i": [0, 1, -2, 100, -128, 127], "u": [0, 1, 2, 100, 254, 255],
           "b": [True, False, False, True, True, False]}

print("/* Made by make_npy.py: { name, bytes of the file, how many, numbers as float32 }; all of shape (2, 3). */")
for kind, sizes in (("f", (2, 4, 8)), ("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)), ("b", (1,))):
    for size in sizes:
        for order in "<>" if size > 1 else "|":
            for fortran in (False, True):
                dtype = f"{order}{kind}{size}"
                array = np.array(NUMBERS[kind]).astype(dtype).reshape(2, 3)
                file = io.BytesIO()
                np.save(file, np.asfortranarray(array) if fortran else array)
                data = file.getvalue()
                numbers = ", ".join("INFINITY" if np.isinf(x) else f"{x:.9g}" for x in array.astype(np.float32).reshape(-1))
                name = f"{dtype} {'Fortran' if fortran else 'C'}"
                print(f'{{ "{name}",\n  "{c_string(data)}",\n  {len(data)}, {{ {numbers} }} }},')
