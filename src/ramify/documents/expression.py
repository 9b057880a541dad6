"""Arithmetic in robot files: numbers, named parameters, + - * / **, and a few functions. Never
``eval``.

A text is checked against a pattern, parsed by :mod:`ast`, and walked by a table of allowed nodes;
every value is a float, so that no power or product can grow beyond eight bytes.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from numbers import Real
from typing import Any, Final

from ramify.core.bounds import LARGEST, TOO_LARGE
from ramify.core.messages import near, nearest_name, shown

LONGEST: Final = 200
"""Characters in an expression."""

CONSTANTS: Final = {"pi": math.pi}
FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "abs": abs,
    "min": min,
    "max": max,
}
RESERVED: Final = frozenset([*CONSTANTS, *FUNCTIONS, "copy", "base"])
"""Names that a parameter cannot take."""

_ARITHMETIC: Final = "arithmetic with + - * / ** and parentheses"
_BINARY: Final[Mapping[type[ast.operator], Callable[[float, float], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[float], float]]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_TOKENS: Final = re.compile(
    r"""(?:\s*+(?:
        (?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+(?![\w.])  # a number
        |[A-Za-z_][A-Za-z_0-9]*+                              # a name
        |\*\*|[-+*/(),]
    ))++\s*+""",
    re.ASCII | re.VERBOSE,
)
"""The words of an expression. Every repetition is possessive (it never gives back what it took), so
a text is refused in one pass, however long it is.
"""


class ExpressionError(ValueError):
    """A text that is not a number, or arithmetic without a value. The message says why;
    ``hinted`` where it names what was meant.
    """

    hinted = False


class UndefinedError(ExpressionError):
    """Arithmetic without a value for these parameters: it divides by zero, is too large, or is
    outside the range of a function.
    """


def evaluate(value: object, names: Mapping[str, float]) -> float:
    """A number or an expression as a float. Infinite values pass; NaN does not.

    Raises ExpressionError for anything else than a number, for unknown names, and for division by
    zero and the like.
    """
    if isinstance(value, str):
        try:
            result: float = _value(_parsed(value), names)
        except ZeroDivisionError:
            raise UndefinedError(f"{shown(value)} divides by zero") from None
        except OverflowError:
            raise UndefinedError(f"{shown(value)} is too large") from None
        except ExpressionError:
            raise
        except (ValueError, TypeError) as error:
            raise UndefinedError(f"{shown(value)} has no value: {error}") from None
    elif isinstance(value, bool) or not isinstance(value, Real):
        raise ExpressionError(f"{shown(value)} is not a number")
    else:
        try:
            result = float(value)
        except OverflowError:
            raise ExpressionError(f"a whole number of this size {TOO_LARGE}") from None
    if isinstance(result, complex) or math.isnan(result):
        raise ExpressionError(f"{shown(value)} is not a real number")
    if LARGEST < abs(result) < math.inf:
        raise ExpressionError(f"{shown(value)} {TOO_LARGE}")
    return result


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        most = f"{LONGEST} characters at most"
        raise ExpressionError(f"{shown(text)} is too long for a number; {most}")
    if not _TOKENS.fullmatch(text):
        raise ExpressionError(f"{shown(text)} is not a number")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(f"{shown(text)} is not a number, nor {_ARITHMETIC}") from None


def _value(node: ast.expr, names: Mapping[str, float]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name):
            if name in names:
                return names[name]
            if name in CONSTANTS:
                return CONSTANTS[name]
            known = list(names)
            error = ExpressionError(f"no parameter is named {shown(name)}{near(name, known)}")
            error.hinted = nearest_name(name, known) is not None
            raise error
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand, names))
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            if function not in FUNCTIONS:
                listed = ", ".join(FUNCTIONS)
                raise ExpressionError(f"no function is named {shown(function)}; there are {listed}")
            return FUNCTIONS[function](*(_value(argument, names) for argument in arguments))
    raise ExpressionError(f"{shown(ast.unparse(node))} is not {_ARITHMETIC}")
