import pytest

from labs.core.process.sentence import LONGEST, sentence, shortened

TORCHSCRIPT = """The following operation failed in the TorchScript interpreter.
Traceback of TorchScript (most recent call last):
  File "<string>", line 3, in forward
def f(x, w):
    return x @ w
           ~~~~~ <--- HERE
RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)
"""
NOT_CLOSE = """Tensor-likes are not close!

Mismatched elements: 1 / 3 (33.3%)
Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)
"""
STATE = """Error(s) in loading state_dict for Linear:
\tMissing key(s) in state_dict: "weight".\x20
\tUnexpected key(s) in state_dict: "w". """
OVERLOADS = """topk() received an invalid combination of arguments - got (int), but expected one of:
 * (Tensor input, int k)
      didn't match because some of the arguments have invalid types: (!int!)
"""
DYNAMO = """AttributeError: 'NoneType' object has no attribute 'shape'

from user code:
   File "mine.py", line 5, in linear

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""
CHECKED = (
    "expected 2 but got 3\nException raised from check at x.cpp:1 (most recent call first):\nframe #0: c10::Error\n"
)
NUMPY = """

IMPORTANT: PLEASE READ THIS FOR ADVICE ON HOW TO SOLVE THIS ISSUE!

  * The Python version is: Python3.11
==========
Original error was: libopenblas.so: cannot open shared object file
"""


CASES = {
    "": "",
    " \n\t\n": "",
    "one line": "one line",
    "two\nlines": "two; lines",
    "expected a float\n  but got an int": "expected a float; but got an int",
    TORCHSCRIPT: "The following operation failed in the TorchScript interpreter. "
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    NOT_CLOSE: "Tensor-likes are not close! Mismatched elements: 1 / 3 (33.3%); "
    "Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)",
    STATE: "Error(s) in loading state_dict for Linear: "
    'Missing key(s) in state_dict: "weight". Unexpected key(s) in state_dict: "w".',
    OVERLOADS: "topk() received an invalid combination of arguments - got (int), but expected one of: "
    "* (Tensor input, int k); didn't match because some of the arguments have invalid types: (!int!)",
    DYNAMO: "AttributeError: 'NoneType' object has no attribute 'shape'",
    CHECKED: "expected 2 but got 3",
    NUMPY: "IMPORTANT: PLEASE READ THIS FOR ADVICE ON HOW TO SOLVE THIS ISSUE! "
    "Original error was: libopenblas.so: cannot open shared object file",
    "a\x1b[2J\x00b\udcff\r\nc": r"a\x1b[2J\x00b\udcff; c",
}


@pytest.mark.parametrize(("text", "said"), CASES.items())
def test_what_helps_is_said_in_one_line(text, said):
    assert shortened(text) == said


@pytest.mark.parametrize("text", ["x" * 100_000, "word " * 100_000, "line\n" * 100_000, "\n" * 100_000])
def test_it_is_short_however_long_the_text_is(text):
    assert len(shortened(text)) <= LONGEST
    assert shortened(text).isprintable()


class Mute(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("why"), "ValueError: why"),
        (ValueError(), "ValueError"),
        (Mute(), "Mute: (its text can't be printed)"),
    ],
)
def test_an_exception_has_its_name(error, said):
    assert sentence(error) == said


def test_a_sentence_of_our_own_needs_no_name():
    assert sentence(ValueError("part linear returned nothing"), named=False) == "part linear returned nothing"
