# SPDX-License-Identifier: MIT
"""The part of the bridge that is written in Python: run as the module `_nacre`
when Python starts. The C files call these functions; `call', `write' and
`dlpack' are theirs."""
import io
import os
import re
import signal
import sys


class LuaError(RuntimeError):
    """An error of Lua that passes through Python; `value' keeps it."""
    value = None


class Function:
    """A function of Lua, or another value that can be called there."""
    __slots__ = ("_value", "_text", "__weakref__", "__dict__")

    def __init__(self, value, text):
        self._value = value
        self._text = text

    def __call__(self, *args, **kwargs):
        return call(self._value, args, kwargs)

    def __copy__(self):  # as a function of Python
        return self

    def __deepcopy__(self, _memo):
        return self

    def __reduce__(self):
        raise TypeError(f"a function of Lua cannot be pickled, and has no "
                        f"meaning in another process: {self!r}")

    def __repr__(self):
        return f"<Lua {self._text}>"


class Tensor:
    """The memory of a tensor, for numpy.asarray and from_dlpack. `capsule'
    keeps the tensor."""

    def __init__(self, capsule, address, shape, strides, typestr, readonly,
                 device, text):
        self._capsule = capsule
        self._device = device
        self._text = text
        if typestr:
            self.__array_interface__ = {
                "version": 3, "data": (address, readonly), "shape": shape,
                "strides": strides, "typestr": typestr}

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None,
                   copy=None):
        if copy:
            raise BufferError("a tensor is shared, not copied: clone it first")
        if dl_device is not None and tuple(dl_device) != self._device:
            raise BufferError(f"the tensor is on another device: {self._text}")
        return dlpack(self._capsule, 1 if max_version else 0)

    def __dlpack_device__(self):
        return self._device

    def __array__(self, dtype=None, copy=None):
        # where there is __array_interface__, NumPy has looked at that
        raise TypeError(f"NumPy cannot have this tensor: {self._text}")

    def __repr__(self):
        return f"<Lua tensor {self._text}>"


def share(*args):
    """The tensor as an array of NumPy, or as itself where that has none."""
    tensor = Tensor(*args)
    if not hasattr(tensor, "__array_interface__"):
        return tensor
    try:
        from numpy import asarray
    except ImportError:
        return tensor
    return asarray(tensor)


def shared(array):
    """The capsule of the tensor that an object is, or None."""
    return array._capsule if type(array) is Tensor else None


#
# Into tensors
#
def dlpack_of(array):
    """Its capsule of DLPack: of the newer form, if it has that."""
    device = getattr(array, "__dlpack_device__", None)
    if device is not None and device()[0] not in (1, 3):
        raise BufferError("it is on a device, and only memory of the CPU can "
                          "be shared: copy it to the CPU first")
    try:
        return array.__dlpack__(max_version=(1, 0))
    except TypeError:
        return array.__dlpack__()


def has_buffer(array):
    """Is the buffer protocol the better way? It tells of memory that can only
    be read."""
    module = type(array).__module__.split(".")
    if module[:2] == ["numpy", "ma"]:
        check_mask(array)
    return not hasattr(array, "__dlpack__") or module[0] == "numpy"


def check_mask(array):
    """What NumPy masks must not come to light as a number."""
    import numpy
    if numpy.ma.is_masked(array):
        raise ValueError("it has masked elements, and a tensor has no mask: "
                         "a:filled(value) gives them a value")


def with_buffer(array):
    """What of an object has a buffer: an object of pandas has an array."""
    try:
        return memoryview(array)
    except (TypeError, ValueError, BufferError):
        if not hasattr(array, "__array__") and \
                not hasattr(array, "__array_interface__"):
            raise
        import numpy
        return numpy.asarray(array)


#
# Errors
#
def describe(error, traceback):
    """The type of an exception, its message, and its traceback as text."""
    import traceback as lines
    kind = type(error).__qualname__
    module = type(error).__module__
    if module not in ("builtins", "__main__", "_nacre"):
        kind = f"{module}.{kind}"
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be read)"
    if isinstance(error, KeyError) and len(error.args) == 1:
        message = repr(error.args[0])
    shown = []
    for frame in lines.extract_tb(traceback):
        if frame.filename == "<nacre>":
            continue
        shown.append(f"{frame.filename}:{frame.lineno}, in {frame.name}"
                     + (f"   {frame.line}" if frame.line else ""))
    if isinstance(error, SyntaxError) and error.text:
        shown.append(f"{error.filename}:{error.lineno}"
                     f"   {error.text.strip()}")
    return kind, readable(message), readable("\n".join(shown)), \
        advice(error, message, traceback)


def readable(text):
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


#: What a module is called where it is installed.
PACKAGES = {"PIL": "pillow", "cv2": "opencv-python", "np": "numpy",
            "skimage": "scikit-image", "sklearn": "scikit-learn",
            "yaml": "pyyaml"}


def advice(error, message, traceback):
    """The hint for an exception, or None."""
    if isinstance(error, SystemExit):
        return "os.exit() ends the program"
    if isinstance(error, TypeError) and \
            "must be Tensor, not numpy.ndarray" in message:
        return ("torch.from_numpy(x) is a tensor of PyTorch with the elements "
                "of x")
    if isinstance(error, NameError):
        while traceback and traceback.tb_next:
            traceback = traceback.tb_next
        found = re.match(r"name '(\w+)' is not defined", message)
        if found and traceback and \
                traceback.tb_frame.f_code.co_filename == "<lua>":
            return f"py.main.{found[1]} = {found[1]} gives Python a variable " \
                "of Lua"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return how_to_install(error.name)
    return None


def how_to_install(name):
    name = name.split(".")[0]
    if name in sys.modules or name in getattr(sys, "stdlib_module_names", ()):
        return None
    package = PACKAGES.get(name, name)
    python = sys.executable or "python3"
    import sysconfig
    managed = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix != sys.base_prefix or not os.path.exists(managed):
        return f"{python} -m pip install {package}"
    return (f"{python} -m venv ~/env && ~/env/bin/pip install {package}, then "
            "NACRE_PYTHON=~/env nacre")


def lua_error(value, text):
    error = LuaError(text)
    error.value = value
    return error


def interrupt(value, text):
    error = KeyboardInterrupt(text)
    error.value = value
    return error


#
# Values
#
def is_scalar_class(kind):
    """Is it a class of numbers of NumPy that Lua has, too?"""
    if issubclass(kind, float):
        return hasattr(kind, "item")
    numpy = sys.modules.get("numpy")
    return numpy is not None and (
        issubclass(kind, (numpy.bool_, numpy.integer, numpy.floating))
        and not issubclass(kind, numpy.timedelta64))


def slice_of(*args):
    return slice(*args)


def equal(a, b):
    shapes = getattr(a, "shape", None), getattr(b, "shape", None)
    if all(isinstance(s, tuple) for s in shapes) and shapes[0] != shapes[1]:
        return False
    result = a == b
    for _ in range(2):  # of a table of pandas: columns, then all of them
        if not isinstance(result, bool) and hasattr(result, "all"):
            result = result.all()
    return bool(result)


def items_of(value):
    """What pairs goes through: keys with values, or positions from 0."""
    items = getattr(value, "items", None)
    if items is not None and hasattr(value, "keys"):
        return iter(items())
    return iter(enumerate(value))


def plain(value):
    """A value as lists, dicts and plain values, for a table."""
    if hasattr(value, "tolist") and not isinstance(value, (list, tuple)):
        return value.tolist()
    if isinstance(value, (set, frozenset, range)):
        return list(value)
    if hasattr(value, "to_dict"):
        try:
            return value.to_dict("list")
        except TypeError:
            return value.to_dict()
    if hasattr(value, "keys") and hasattr(value, "items"):
        return dict(value.items())
    if hasattr(value, "__iter__"):
        return list(value)
    return value


def plain_array(value):
    """An array within a list or dict as a list, or None."""
    if isinstance(value, type) or not hasattr(value, "tolist") or \
            not hasattr(value, "__len__"):
        return None
    return value.tolist()


def has_attribute(value, name):
    """Would setting the attribute change one that is there?"""
    try:
        getattr(value, name)
    except AttributeError:
        return False
    return True


def is_settable(value):
    return hasattr(type(value), "__setitem__")


def with_context(manager, function):
    with manager as value:
        return function(value)


#
# For the shell: names and texts, without running the code of properties
#
def names_of(value):
    try:
        return [name for name in dir(value) if isinstance(name, str)]
    except Exception:
        return []


def look(value, name):
    """(the attribute as it is stored,), or None."""
    import inspect
    import types
    if isinstance(value, types.ModuleType):
        found = vars(value)
        return (found[name],) if name in found else None
    try:
        found = inspect.getattr_static(value, name)
    except AttributeError:
        return None
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    return (found,)


def explain(name, value):
    """How something is called, and the beginning of its documentation."""
    import inspect
    try:
        head = name + str(inspect.signature(value))
    except (TypeError, ValueError):
        head = name + ("(...)" if callable(value) else "")
    kind = type(value).__name__
    text = inspect.getdoc(value) or ""
    lines = text.split("\n")
    last = name.split(".")[-1]
    if lines and re.match(rf"(\w+\.)*{re.escape(last)}\(", lines[0]):
        head, lines = lines[0], lines[1:]
    while lines and not lines[0].strip():
        lines = lines[1:]
    return head, kind, "\n".join(lines[:12])


def picture(figure):
    """A figure of matplotlib as the bytes of a PNG."""
    if not hasattr(figure, "savefig"):
        get = getattr(figure, "get_figure", None) or figure.gcf
        figure = get()
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


#
# Where Python writes, and what Ctrl-C does
#
class Output(io.TextIOBase):
    def __init__(self, number, name):
        self._number = number
        self.name = name
        self.mode = "w"

    encoding = "utf-8"
    errors = "backslashreplace"

    def writable(self):
        return True

    def fileno(self):
        return self._number

    def isatty(self):
        return os.isatty(self._number)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"a str is written, not {type(text).__name__}")
        write(self._number, text.encode(self.encoding, self.errors))
        return len(text)

    def flush(self):
        write(self._number, b"")


def on_interrupt(_number, _frame):
    raise KeyboardInterrupt


def start():
    sys.stdout = Output(1, "<stdout>")
    sys.stderr = Output(2, "<stderr>")
    sys.argv = ["nacre"]
    if sys.stdin:  # the builtin exit() would close it, and end input()
        sys.stdin.close = lambda: None
    if not getattr(sys.flags, "safe_path", False) and "" not in sys.path:
        sys.path.insert(0, "")
    # it would take the line editor of the shell over
    sys.modules.setdefault("readline", None)
    signal.signal(signal.SIGINT, on_interrupt)
