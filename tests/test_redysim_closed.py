"""ReDySim's closed models and its other kinds of files: loops found again in jacobian.m, hinges in
for_kine.m, GUI-made inputs.m, the book's n_j, aj of floating robots.
"""

from __future__ import annotations

import re
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redysim_data import mat_bytes, numbers, published, variables

import ramify as rf
from ramify.cli import main
from ramify.files.redysim.matlab_constants import hinges
from ramify.files.redysim.matlab_text import parse_matlab
from ramify.files.redysim.matlab_values import run_matlab
from ramify.files.redysim.reader import read_redysim
from ramify.files.redysim.redysim_loops import (
    PinClosure,
    PlaneTree,
    jacobian_function,
    loops_of_pins,
)
from ramify.files.redysim.redysim_robot import from_variables
from ramify.files.robot_writer import to_yaml

# Rows of J: velocities of the two ends of each pin, less each other, some with others added.
BARS = """function [J, dJ] = jacobian(q, dq)
[n dof type alp a b th bt r dx dy dz m g Icxx Icyy Iczz Icxy Icyz Iczx aj al] = inputs();
c = q(2) + q(3);   % the coupler's direction
crank = al(1)*[sin(q(1)); -cos(q(1))];
rocker = [-al(2)*sin(q(2)) - al(3)*sin(c)
           al(2)*cos(q(2)) + al(3)*cos(c)];
coupler = al(3)*[-sin(c); cos(c)];
J = [crank rocker coupler];
dJ = zeros(2,3);
"""
SLIDER = """function [J, dJ] = jacobian(th, dth)
[n dof type alp a b thh bt r dx dy dz m g Icxx Icyy Iczz Icxy Icyz Iczx aj al]=inputs();
u = pi/2 + th(1); w = u + th(2);   % seen from axes turned by a quarter
J = [-al(1)*sin(u)-al(2)*sin(w)  -al(2)*sin(w)  -1
      al(1)*cos(u)+al(2)*cos(w)   al(2)*cos(w)   0];
"""
LEG = """function [J, dJ] = jacobian(th, dth)
[n dof type alp a b thh bt r dx dy dz m g Icxx Icyy Iczz Icxy Icyz Iczx aj al]=inputs();
h = al(3)/2; k = th(2)+th(3); p = th(4)+pi; u = p+th(5); v = p+th(6); w = v+th(7);
pin = [sin(th(1)) 0; 0 -cos(th(1))]*[al(1); al(1)];
J1 = [pin; -pin; -pin];
J2 = [-al(2)*sin(th(2))-h*sin(k); al(2)*cos(th(2))+h*cos(k)
      al(3)*sin(k); -al(3)*cos(k); al(3)*sin(k); -al(3)*cos(k)];
J3 = [-h*sin(k); h*cos(k); al(3)*sin(k); -al(3)*cos(k); al(3)*sin(k); -al(3)*cos(k)];
J4 = [0; 0; -a(5)*sin(p)-al(5)*sin(u); a(5)*cos(p)+al(5)*cos(u)
      -al(4)*sin(p)-a(7)*sin(v)-al(7)*sin(w); al(4)*cos(p)+a(7)*cos(v)+al(7)*cos(w)];
J5 = [0; 0; -al(5)*sin(u); al(5)*cos(u); 0; 0];
J6 = [0; 0; 0; 0; -a(7)*sin(v)-al(7)*sin(w); a(7)*cos(v)+al(7)*cos(w)];
J7 = [0; 0; 0; 0; -al(7)*sin(w); al(7)*cos(w)];
J = [J1 J2 J3 J4 J5 J6 J7];
"""
RRR = """function [J, dJ] = jacobian(th, dth)
a = 0.4; b = 0.6; d = 0.4;
s = th(1); t = s+th(2); u = t+th(3);
A = [-a*sin(s) -b*sin(t); a*cos(s) b*cos(t)]; B = d*[-sin(u); cos(u)]; C = d*[-sin(u+pi/3); cos(u+pi/3)];
p = th(4); q = p+th(5); P = [a*sin(p) b*sin(q); -a*cos(p) -b*cos(q)];
v = th(6); w = v+th(7); V = [a*sin(v) b*sin(w); -a*cos(v) -b*cos(w)];
J = [A*[1;1]+B A(:,2)+B B P*[1;1] P(:,2) zeros(2,2)
     A*[1;1]+C A(:,2)+C C zeros(2,2) V*[1;1] V(:,2)];
"""
HINGES = """function [so sc vc tt st]=for_kine(q, dq, n, alp, a, b, th, bt, r, dx, dy, dz)
% so(:,4)=[9;9;9];
so(:,1)=[0;0;0];
{}
for i=1:n
  so(:,i)=so(:,bt(i))+Qf(:,:,bt(i))*aim;
end
"""
# The same in the shape of ReDySim's own files: velocities in moving axes, seen through Qi.'
OWN_HINGES = """function [so sc vc tt st]=for_kine(q, dq, n, alp, a, b, th, bt, r, dx, dy, dz, al, alt)
e=[0;0;1]; tt=zeros(3,n); tb=zeros(3,n); so=zeros(3,n); sc=zeros(3,n); st=zeros(3,n);
vc=zeros(3,n); Qf=zeros(3,3,n);
so(:,1)=[0;0;0];
{}
p=1-r;
for i=1:n
  th(i)=th(i)*p(i)+q(i)*r(i); b(i)=b(i)*r(i)+q(i)*p(i);
  di=[dx(i);dy(i);dz(i)];
  Qi=[cos(th(i)) -sin(th(i)) 0
      cos(alp(i))*sin(th(i)) cos(alp(i))*cos(th(i)) -sin(alp(i))
      sin(alp(i))*sin(th(i)) sin(alp(i))*cos(th(i))  cos(alp(i))];
  if bt(i)==0   % on the ground
    Qf(:,:,i)=Qi; sc(:,i)=so(:,i)+Qf(:,:,i)*di; tt(:,i)=r(i)*e*dq(i);
  elseif r(i)~=0
    Qf(:,:,i)=Qf(:,:,bt(i))*Qi;
    aim=[a(i); -b(i)*sin(alp(i)); ...
         b(i)*cos(alp(i))];
    so(:,i)=so(:,bt(i))+Qf(:,:,bt(i))*aim; tti=tt(:,bt(i));
    tb(:,i)=Qi.'*(tb(:,bt(i))+[tti(2)*aim(3)-aim(2)*tti(3); 0; 0])+(1-r(i))*e*dq(i);
    tt(:,i)=Qi.'*tti+r(i)*e*dq(i);
  end
end
"""


def folder(
    path: Path, name: str, J: str = "", lines: str = "", form: str = HINGES, **more: Any
) -> Path:
    (path / "inputs.mat").write_bytes(mat_bytes(numbers(name) | more))
    if J:
        (path / "jacobian.m").write_text(J)
    if lines:
        (path / "for_kine.m").write_text(form.format(lines))
    return path / "inputs.mat"


@pytest.mark.parametrize(
    ("name", "J", "lines", "twin", "parameters"),
    [
        ("fourbar_mechanism", BARS, "so(:,2)=[a(2);0;0];", "redysim_four_bar", {}),
        ("hoken_fourbar", BARS, "so(:,2)=[-0.0895;0;0];", "hoeken_four_bar", {}),
        ("slider_crank", SLIDER, "% one hinge", "slider_crank", {"rod": 1.0}),
        (
            "robotic_leg",
            LEG,
            "so(:,2)=[0.050;0;0];\nso(:,4)=[0.070;-0.030;0];",
            "robotic_leg",
            {},
        ),
        (
            "3_rrr_parallel_robot",
            RRR,
            "so(:,4)=[1;0;0];  % a hinge\nso(:,6)=[0.5;0.866;0];",
            "three_rrr",
            {},
        ),
    ],
)
@pytest.mark.parametrize("form", [HINGES, OWN_HINGES], ids=["short", "own"])
def test_closed_models_are_closed(
    name: str,
    J: str,
    lines: str,
    twin: str,
    parameters: dict[str, float],
    form: str,
    tmp_path: Path,
) -> None:
    """J of the loops spans the rows of jacobian.m, and free fall accelerates as the built-in robot
    does.
    """
    with warnings.catch_warnings(record=True, action="always") as told:
        m = rf.load(folder(tmp_path, name, J, lines, form))
    assert "not a constant hinge" not in str(m.metadata["report"])
    found = [str(warning.message) for warning in told]
    wrong = name == "fourbar_mechanism"  # its th does not close the loop
    assert ["pin1 does not close there: its ends are 0.0261 m" in text for text in found] == [
        True
    ] * wrong
    assert len(m.loops) == len(rf.load(twin).loops)
    q = m.assemble({"joint1": 0.0} if name == "fourbar_mechanism" else None).q
    assert m.degrees_of_freedom == variables(name)["dof"]
    known = rf.load(twin, **parameters)
    if wrong:
        np.testing.assert_allclose(q, known.assemble({"crank": 0.0}).q, atol=1e-6)
    else:
        np.testing.assert_allclose(q, np.array(from_start(name)), atol=6e-3)
    if twin not in ("robotic_leg", "hoeken_four_bar"):  # which have other masses
        home = known.assemble({known.coordinates[0]: q[0]}, guess=q).q
        a, b = (x.forward_dynamics(s, 0 * s, 0 * s) for x, s in ((m, q), (known, home)))
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=1e-6 * np.abs(b).max())


def test_loops_whose_hinges_nobody_tells_stay_open_with_a_warning(tmp_path: Path) -> None:
    """With several loops, th does not tell which hinge is off: no mechanism is invented."""
    with pytest.warns(UserWarning, match=r"for_kine\.m, which says where link2.* is hinged"):
        m = rf.load(folder(tmp_path, "robotic_leg", LEG))
    assert not m.loops


@pytest.mark.parametrize(
    ("name", "links", "joined"),
    [
        ("robotic_leg", (2, 4), ""),
        ("3_rrr_parallel_robot", (4, 6), ""),
        ("hoken_fourbar", (), "its rows have them"),
        ("slider_crank", (), "a slide has no hinge"),
    ],
)
def test_advice_to_close_loops_begins_with_hinges(
    name: str, links: tuple[int, ...], joined: str, tmp_path: Path
) -> None:
    """Links that turn where another does have no hinge yet: closed so, the ground link of the leg's
    four-bar would have the length 0. With the advice followed, it closes.
    """
    with pytest.warns(UserWarning, match="loops are open here") as told:
        m = rf.load(folder(tmp_path, name))
    (text,) = [str(warning.message) for warning in told]
    assert ("ground link has the length 0" in text) == (not joined)
    named = ", ".join(f"link{k}" for k in links)
    assert joined or f"say where {named} hang{'s' * (len(links) == 1)} on the ground" in text
    assert all(f"so(:,{k})=[x;y;z]" in text for k in links)
    if name == "robotic_leg":
        moved = to_yaml(m)
        for k, at in ((2, "[0.05, 0, 0]"), (4, "[0.07, -0.03, 0]")):
            head, tail = moved.split(f"  - name: link{k}\n")
            row, rest = tail.split("dh: ", 1)
            moved = f"{head}  - name: link{k}\n{row}frame: {{xyz: {at}}}\n" + rest.split("\n", 1)[1]
        (tmp_path / "moved.yaml").write_text(moved)
        with pytest.warns(UserWarning, match="loops are open"):
            again = rf.load(tmp_path / "moved.yaml")
        ends = (("link1", (0.025, 0, 0)), ("link3", (0.0625, 0, 0)))
        pinned = rf.with_loop(again, "pin", "revolute", *ends, planar=True)
        wanted = from_start(name)
        got = pinned.assemble({"joint1": 0.0}, guess=np.array(wanted)).q
        np.testing.assert_allclose(got, wanted, atol=5e-3)


# ---- initials.m ----

INITIALS = """% where a run starts
function[n, y0, ti, tf, incr, rtol, atol, int_type] = initials()
[n ]=inputs();
{}
act_en=0;
{}
%Time span
ti=0;
tf=1.33;
incr=.01; %s between rows
rtol=1e-4; atol=1e-6;
int_type=0;
end
"""


def test_initials_give_where_a_run_starts_and_how_fast(tmp_path: Path) -> None:
    """The Hoeken linkage turns at 45 rpm; its state is that of initials.m, not of th."""
    path = folder(tmp_path, "hoken_fourbar", BARS, "so(:,2)=[-0.0895;0;0];", OWN_HINGES)
    state = "q=[0;    0.9844;    4.3144];\ndq=[4.7124;    1.4045;   -0.0000];"
    (tmp_path / "initials.m").write_text(INITIALS.format(state, "y0=[q; dq; act_en];"))
    m = rf.load(path)
    (start,) = m.keyframes
    assert start.q == (0.0, 0.9844, 4.3144)
    assert start.v == (4.7124, 1.4045, 0.0)
    assert m.metadata["redysim"]["tf"] == 1.33
    assert "ends at 1.33 s" in str(m.metadata["report"])
    with pytest.warns(RuntimeWarning, match="opens the loops .* a little: pin1"):
        r = rf.simulate(m, 0.05, start.q, start.v)
    np.testing.assert_allclose(r.v[0], start.v, atol=2e-4)  # four digits, made consistent
    np.testing.assert_allclose(m.constraints(r.q[-1]).residual, 0.0, atol=1e-8)
    (tmp_path / "again.yaml").write_text(to_yaml(m))
    assert rf.load(tmp_path / "again.yaml").keyframes == m.keyframes


Z = "zeros(n,1)"
FREE = "th=[0.1; 0.2; 0.3];\ndth=zeros(n-1,1); dth(2)=5;\nq=[1; 2; 3; 4; 5; 6];\ndq=[0;7;0;0;0;0];"
FREE_Q, FREE_V = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.1, 0.2, 0.3), (0.0, 7.0, *[0.0] * 5, 5.0, 0.0)


@pytest.mark.parametrize(
    ("name", "state", "y0", "q", "v"),
    [
        ("2_link_robot", "q=[-pi/2; 2*pi];\ndq=[1 2];", "", (-np.pi / 2, 2 * np.pi), (1.0, 2.0)),
        ("2_link_robot", "th=[1 2];", "", (1.0, 2.0), (0.0, 0.0)),
        ("2_link_robot", f"q=ones(n,1);\ndq={Z};", "y0=[q; dq; act_en];", (1.0, 1.0), (0.0, 0.0)),
        ("2_link_robot", "q=[1;2]; dq=[3;4];", "y0=[q/2; dq; act_en];", (0.5, 1.0), (3.0, 4.0)),
        ("2_link_robot", "if n>1\nq=[1;2];\nend", "", None, None),  # not read: may run or not
        ("floating_3_link", FREE, "y0=[q; th; dq; dth; act_en];", FREE_Q, FREE_V),
        ("floating_3_link", FREE, "", FREE_Q, FREE_V),
        ("floating_3_link", "q=zeros(6,1);dq=q;", "y0=[q; dq; act_en];", None, None),  # no joints
        ("legged_biped", "[th dth]=trajectory(0);\nq=zeros(6,1);dq=q;", "", None, None),
    ],
)
def test_initials_of_every_dialect(
    name: str, state: str, y0: str, q: tuple[float, ...] | None, v: Any, tmp_path: Path
) -> None:
    (tmp_path / "initials.m").write_text(INITIALS.format(state, y0))
    m = rf.load(folder(tmp_path, name))
    report = str(m.metadata["report"])
    assert ("no constant state of all variables" in report) == (q is None)
    if q is not None:
        (start,) = m.keyframes
        np.testing.assert_allclose(start.q, q, atol=1e-15)
        np.testing.assert_allclose(start.v, v, atol=1e-15)
    if name == "floating_3_link" and q is not None:
        flat = rf.load(folder(tmp_path, name), base="planar").keyframes[0]
        assert flat.q == (1.0, 2.0, 4.0, *q[6:])
        assert flat.v == (0.0, 7.0, 0.0, *v[6:])
        free = rf.load(folder(tmp_path, name), base="free")
        assert not free.keyframes
        assert "initials.m: its state has angles of the base" in str(free.metadata["report"])


# ---- constructs of ReDySim's own files ----


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = [1 2; 3 4].'*[1; 1];", [[4.0], [6.0]]),
        ("x = 2.';", 2.0),
        ("x = [2 1; 1 3]\\[1; 2];", [[0.2], [0.6]]),
        ("A = [1 0; 0 1; 1 1]; x = A\\[1; 2; 4];", [[4.0 / 3.0], [7.0 / 3.0]]),
        ("x = 4\\[2 6];", [[0.5, 1.5]]),
        ("x = [2 4].\\[1 8];", [[0.5, 2.0]]),
        ("x = [1 2]/[2 1; 1 3];", [[0.2, 0.6]]),
        ("x = [1 2]/[3 4];", 0.44),
        ("x = -2^2 + 2^-1;", -3.5),
        ("x = 1:3 == [1 5 3];", [[1.0, 0.0, 1.0]]),
        ("x = 3 ~= 4;", 1.0),
        ("x = 1 + 1 == 2 && ~(2 > 3) || 0;", 1.0),
        ("x = 0 && y;", 0.0),
        ("x = rem(-7, 3) + 10*mod(-7, 3) + 100*rem(5.5, -2);", -1.0 + 20.0 + 150.0),
        ("x = mod(5, 0);", 5.0),
        ("x = length([1 2; 3 4; 5 6]) + length(zeros(2,5));", 8.0),
        ("x = atan2([1 -1], -1);", [[0.75 * np.pi, -0.75 * np.pi]]),
        ("x = exp([0 1]) + sqrt(4)*tan(0) + asin(1) + acos(1);", [[1 + np.pi / 2, np.e + np.pi / 2]]),
        ("x = [1, ...\n 2, ... a comment\n 3];", [[1.0, 2.0, 3.0]]),
        ("x = [1 -2\n 3 - 4, 5];", [[1.0, -2.0], [-1.0, 5.0]]),
        ("n = 3; if n==0 %none\n x = 1;\nelseif n~=3\n x = 2;\nelse\n x = 3;\nend", 3.0),
        ("n = 0; if n==0, x = 1; else, x = 2; end", 1.0),
        ("x = 0;\nfor i=1:4\n if rem(i,2)==0\n  x = x + i;\n end\nend", 6.0),
        ("q(1,1)=1;\nq(2,1)=4; q(3,1)=(2*pi+1)-q(2); x=q';", [[1.0, 4.0, 2 * np.pi - 3.0]]),
        ("x = zeros(2,1); x(:,1) = [3;4]; x = x.'*x;", 25.0),
    ],
)  # fmt: skip
def test_matlab_is_evaluated_as_matlab_does(text: str, value: Any) -> None:
    found = run_matlab(parse_matlab(text, "inputs.m"), "inputs.m")["x"]
    np.testing.assert_allclose(found, value, atol=1e-14)
    assert np.shape(found) == np.shape(value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = [1 2; 2 4]\\[1; 2];", "rank 1 with 2 unknowns"),
        ("x = [1 2]\\3;", "has no one solution"),
        ("if 1\nx = 1;", "a loop or an if without its end"),
        ("if 1\nx = 1;\nelse\nx = 2;\nelse\nx = 3;\nend", "nothing but end follows an else"),
        ("for i=1:2\nx = 1;\nelse\nend", "ends with end"),
        ("x = rem(1, 0);", "not finite"),
    ],
)
def test_matlab_that_has_no_value_is_named(text: str, why: str) -> None:
    with pytest.raises(rf.ModelError, match=why):
        run_matlab(parse_matlab(text, "inputs.m"), "inputs.m")


LEG_HINGES = {1: (0.05, 0.0, 0.0), 3: (0.07, -0.03, 0.0)}
FORMS = [
    "so(:,2)=[0.05 0 0]; so(:,4)=[0.07,-0.03,0];",  # two statements, rows
    "so(1,2)=0.05; so(1,4)=0.07; so(2,4)=-0.03;",
    "so(1,2)=0.05; so(1:2,4)=[0.07; -0.03];",
    "l=0.05; l2 = l + 0.02;\nso(:,2)=[l;0;0];\nso(:,4)=[l2; -0.03; ...\n 0];",
    "so(:,2)=...\n[0.05;0;0]; so(:,4)=[0.07;-0.03;0]';",
    "so=zeros(3,n); so(:,2)=[al(1)/al(1)/20;0;0]; h=[0.07;-0.03;0]; so(:,4)=h;",
    "so(:,[2 4])=[0.05 0.07;0 -0.03;0 0];",
    "so=[0 0.05 0 0.07;0 0 0 -0.03;0 0 0 0];",
    "if q(1)>0, k=1; end\nso(:,2)=[0.05;0;0]; so(:,4)=[0.07;-0.03;0];\nreturn\nso(:,4)=[9;9;0];",
]
NOT_CONSTANT = [
    ("so(:,2)=[q(1);0;0]; so(:,4)=[0.07;-0.03;0];", "so(:,2)=[q(1);0;0]"),
    ("so(:,2)=[0.05;0;0]; so(:,4)=[0.07;-0.03;0];\nso(2,4)=sin(q(1));", "so(2,4)=sin(q(1))"),
    ("l=0.05; l=q(1);\nso(:,2)=[l;0;0]; so(:,4)=[0.07;-0.03;0];", "so(:,2)=[l;0;0]"),
    ("if q(1)>0\nl=0.05; else\nl=0.06; end\nso(:,2)=[l;0;0];", "so(:,2)=[l;0;0]"),
    ("so(:,2)=[0.05;0;0];\nif q(1)>0\nso(:,2)=[0.06;0;0]; end", "so(:,2)=[0.06;0;0]"),
    ("for k=[2 4]\nso(:,k)=[0.05;0;0]; end", "so(:,k)=[0.05;0;0]"),
    ("[so, sc]=places(q);", "[so, sc]=places(q)"),
    ("if nargin>2 so(:,2)=[0.05;0;0]; end", "if nargin>2 so(:,2)"),
    ("if bt(4)==0\nso(:,2)=[0.05;0;0];\nend", "so(:,2)=[0.05;0;0]"),
    ("so(:,2)=[0.05;0;0];\nif 0\nso(:,4)=[9;9;0];\nend", "so(:,4)=[9;9;0]"),
    ("for k=1:2 so(:,2)=[0.05;0;0]; end", "for k=1:2 so(:,2)"),
    ("while q(1)>0\nso(:,2)=[0.05;0;0]; end", "so(:,2)=[0.05;0;0]"),
    ("switch n\ncase 7\nso(:,2)=[0.05;0;0]; end", "so(:,2)=[0.05;0;0]"),
    ("try\nso(:,2)=[0.05;0;0];\ncatch\nend", "so(:,2)=[0.05;0;0]"),
    ("if q(1)>0\nreturn\nend\nso(:,2)=[0.05;0;0];", "so(:,2)=[0.05;0;0]"),
    ("if q(1)>0\nl=1; elseif n>7\nl=2; else\nl=3; end\nso(:,2)=[l;0;0];", "so(:,2)=[l;0;0]"),
    ("so(:,2)=[0.05;0;0];\nfor k=1:n\nso(:,k)=[0;0;0]; end", "so(:,k)=[0;0;0]"),
]  # fmt: skip


@pytest.mark.parametrize("lines", FORMS)
def test_hinges_in_every_form(lines: str) -> None:
    """Constants however they are written: elements, rows, columns, variables, continued lines."""
    known = {"n": np.array([[7.0]]), "al": np.full((7, 1), 0.3), "bt": np.zeros((7, 1))}
    found, rest = hinges(HINGES.format(lines), known, [0, 1, 3], 7)
    assert rest == []
    rounded = {k: tuple(np.round(at, 15)) for k, at in found.items()}
    assert rounded == {0: (0.0, 0.0, 0.0), **LEG_HINGES}
    assert list(hinges(HINGES.format("so=zeros(3,n);"), known, [0, 1, 3], 7)[0]) == [0]  # no data


@pytest.mark.parametrize(("lines", "named"), NOT_CONSTANT)
def test_hinges_that_are_no_constants_are_named(lines: str, named: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="hinges that are not constants"):
        m = rf.load(folder(tmp_path, "robotic_leg", LEG, lines))
    assert f"not a constant hinge: {named}" in str(m.metadata["report"])
    assert not m.loops


def from_start(name: str) -> list[float]:
    data = variables(name)
    return [t if r else b for t, r, b in zip(data["th"], data["r"], data["b"], strict=True)]


def test_a_hinge_that_nobody_gives_follows_from_the_start(tmp_path: Path) -> None:
    """The book's file (table 10.3) has no ground length in its rows: th closes the loop."""
    whole = rf.load(folder(tmp_path, "hoken_fourbar", BARS))
    (tmp_path / "b").mkdir()
    m = rf.load(folder(tmp_path / "b", "hoken_fourbar", BARS, a=[0.0, 0.0, 0.1152]))
    assert "link2 hangs on the ground at (-0.089" in str(m.metadata["report"])
    np.testing.assert_allclose(m.bodies[1].joint.placement.position, [-0.0895, 0, 0], atol=1e-5)
    np.testing.assert_allclose(m.assemble().q, whole.assemble().q, atol=2e-4)


@pytest.mark.parametrize(
    ("J", "why"),
    [
        ("", "there is no jacobian.m beside it"),
        (BARS.replace("sin(c)", "sin(2*c)"), "rows 1 and 2 of J are not a pin between two links"),
        (BARS.replace("= jacobian", "= jacobian2(q"), "jacobian"),
        (BARS.replace("dq)", "dq, al)"), "one or two arguments, .* yours has 3 arguments"),
        (BARS.replace("J = [", "while 1\nJ = ["), "only assignments"),
        (BARS.replace("dJ = zeros(2,3)", "J = [J; J(1,:)]"), "J is 3 x 3"),
    ],
)
def test_loops_that_stay_open_are_told_everywhere(
    J: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder(tmp_path, "fourbar_mechanism", J)
    with pytest.warns(UserWarning, match="changes the motion"):
        m = rf.load(path)
    assert not m.loops
    assert re.search(why, str(m.metadata["report"]))
    assert [f.code for f in m.check() if f.level == "warning"] == ["left-out"]
    text = to_yaml(m)
    assert text.count("loops are open here (to close: 1)") == 1
    assert "planar=True" in text
    if not J:
        (tmp_path / "converted.yaml").write_text(to_yaml(m))
        with pytest.warns(UserWarning, match=r"converted\.yaml: left out, .* loops are open here"):
            again = rf.load(tmp_path / "converted.yaml")
        assert to_yaml(again).split("links:")[0] == to_yaml(m).split("links:")[0]
        assert [f.code for f in again.check() if f.level == "warning"] == ["left-out"]
        again_as = str(tmp_path / "again.yaml")
        for command in (
            ["info"],
            ["check"],
            ["simulate", "--t-end", "0.01"],
            ["convert", again_as],
        ):
            with pytest.raises(SystemExit):
                main([command[0], str(path), *command[1:]])
            told = capsys.readouterr().err
            assert told.startswith("ramify: warning:")
            assert "loops are open here" in told


def test_loops_that_the_user_closes_are_no_longer_called_open(tmp_path: Path) -> None:
    """Not before the last; also after a detour through a robot file, and in a file with loops."""
    with pytest.warns(UserWarning, match=r"to close: 2\).*planar=True"):
        m = rf.load(folder(tmp_path, "3_rrr_parallel_robot"))
    (tmp_path / "converted.yaml").write_text(to_yaml(m))
    with pytest.warns(UserWarning, match=r"to close: 2\)"):
        again = rf.load(tmp_path / "converted.yaml")
    ends = ("link2", "link4", "link7")
    for model in (m, again):
        one = rf.with_loop(model, "a", "revolute", (ends[0], (0, 0, 0)), (ends[1], (0, 0, 0)))
        assert "left-out" in [f.code for f in one.check()]
        assert "loops are open" in str(one.metadata["report"])
        two = rf.with_loop(one, "b", "revolute", (ends[0], (0, 0, 0)), (ends[2], (0, 0, 0)))
        assert "left-out" not in [f.code for f in two.check()]
        assert "loops are open" not in str(two.metadata["report"])
        assert "left_out" not in to_yaml(two)
    text = to_yaml(m).split("keyframes:")[0] + "loops:" + to_yaml(two).split("loops:")[1]
    (tmp_path / "closed.yaml").write_text(text)
    assert "report" not in rf.load(tmp_path / "closed.yaml").metadata


def test_a_closed_floating_robot_stays_open(tmp_path: Path) -> None:
    """aj of a floating robot leaves the base out."""
    more = {"type": 1, "dof": 5, "aj": [1, 0, 1]}
    with pytest.warns(UserWarning, match="rows of a floating base"):
        m = rf.load(folder(tmp_path, "floating_3_link", BARS, **more))
    assert [joint.actuated for joint in m.joints] == [False, True, False, True]
    for base in ([0], [0] * 6, [1] * 6):
        whole = read_redysim(folder(tmp_path, "floating_3_link", aj=[*base, 1, 0, 1]))
        assert [joint.actuated for joint in whole.joints] == [False, True, False, True]
        assert ("no drive" in str(whole.metadata["report"])) == any(base)
    with pytest.raises(rf.ModelError, match="aj has 5 numbers for a base and 3 joints"):
        read_redysim(folder(tmp_path, "floating_3_link", aj=[0, 0, 1, 0, 1]))


# ---- inputs.m of the graphical interface ----

GUI = """function [n dof type alp a b th bt r dx dy dz m g Icxx Icyy Iczz Icxy Icyz Iczx aj al Tp steps]=inputs()
inputs_file = load ('inputs.mat');
"""


@pytest.mark.parametrize(
    "form",
    [
        "inputs_file",
        "load inputs.mat",
        "load('inputs.mat')",
        "load('inputs')",
        "load inputs",
        "load('inputs.mat','-mat')",
        "load inputs -mat",
    ],
)
def test_an_inputs_m_of_the_interface_follows_its_file(form: str, tmp_path: Path) -> None:
    data = numbers("kuka_kr5")
    text = GUI + "\n".join(f"{name} = inputs_file.{name};" for name in data) + "\nend"
    if form != "inputs_file":
        text = GUI.splitlines()[0] + f"\n{form};\nend"
    path = tmp_path / "inputs.m"
    path.write_text(text)
    with pytest.raises(rf.ModelError, match=r"inputs\.m:2: .*inputs\.mat is missing"):
        rf.load(path)
    (tmp_path / "inputs.mat").write_bytes(mat_bytes(data))
    m = rf.load(path)
    assert m.skeleton == rf.load(tmp_path / "inputs.mat").skeleton
    q, v, a = np.split(published("kuka_kr5_invdyn", "statevar"), 3, axis=1)
    np.testing.assert_allclose(
        m.inverse_dynamics(q, v, a), published("kuka_kr5_invdyn", "tor"), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x = load('../inputs.mat');", "same folder"),
        ("x = load('inputs.m');", "same folder"),
        ("x = load('inputs.mat', '-ascii');", "load takes a file and variables"),
        ("x = load('inputs.mat', 'n'); n = x.n; m = x.m;", "no file was loaded that gives x.m"),
        ("load inputs n none", "'inputs' has no variable 'none'"),
        ("n = y.n;", "no file was loaded that gives y.n"),
        ("x = load('inputs.mat'); n = x.none;", "no file was loaded that gives x.none"),
    ],
)
def test_what_load_refuses(line: str, why: str, tmp_path: Path) -> None:
    folder(tmp_path, "kuka_kr5")
    path = tmp_path / "inputs.m"
    path.write_text(line)
    with pytest.raises(rf.ModelError, match=why):
        rf.load(path)


# ---- the book's files ----

BOOK = """function [type dof s n_s n_l n_j bt al alp a b dx dy dz m g Icxx Icyy
Iczz Icxy Icyz Iczx aj Tp step]=inputs()
type=0; dof=4; s=3; n_s=[1, 2, 1];
n_l=sum(n_s); n=n_l;
bt=[0, 1, 2, 1]; n_j=[1, 1, 1, 1];
al=[0.10, 0.05, 0.05, 0.05];
alp=[0, 0, 0, 0]; a=[0, 0.10, 0.05, 0.05]; b=[0; 0; 0; 0];
dx=al/2; dy=[0, 0, 0, 0]; dz=dy;
m=[0.4, 0.2, 0.2, 0.2];
Icxx=zeros(n,1);Icyy=zeros(n,1);Iczz=zeros(n,1);
Icxy=zeros(n,1);Icyz=zeros(n,1);Iczx=zeros(n,1);
for i=1:n
Icyy(i)=(1/12)*m(i)*al(i)*al(i); Iczz(i)=Icyy(i);
end
g=[0 ; -9.81; 0]; aj=[1, 1, 1, 1];
Tp=1; ts=0.01;
"""


def test_the_book_s_table_10_1(tmp_path: Path) -> None:
    """The gripper; the printed file asks for step, but assigns ts."""
    path = tmp_path / "inputs.m"
    path.write_text(BOOK)
    m = rf.load(path)
    assert "step: never assigned" in str(m.metadata["report"])
    gripper = rf.load("gripper")
    q, v = gripper.random(3)
    np.testing.assert_allclose(m.inverse_dynamics(q, v, v), gripper.inverse_dynamics(q, v, v))
    path.write_text(BOOK.replace("n_j=[1, 1, 1, 1]", "n_j=[1, 3, 1, 1]"))
    with pytest.raises(rf.ModelError, match=r"n_j\(2\) is 3, but link 2 has one DH row"):
        rf.load(path)
    path.write_text(BOOK.replace("n_j=[1, 1, 1, 1]", "n_j=[6, 1, 1, 1]"))  # as in table 10.10
    assert [joint.kind for joint in rf.load(path).joints] == ["free_euler", *["revolute"] * 3]


# Tables 10.3, 10.8 and 10.9 as printed, but for n, a and b, which the print runs together.
BOOK_BARS = """function [type dof s n_s n_l n_j bt al alp a b dx dy dz m g Icxx
Icyy Iczz Icxy Icyz Iczx aj Tp step]=inputs()
type=1; dof=1; s=2; n_s=[1, 2]; n_l=sum(n_s); n=n_l;
bt=[0, 0, 2]; n_j=[1, 1, 1];
a1=0.038; a2=0.1152; a3=0.1152; a4=0.0895;
al=[a1, a2, a3, a4]; alp=[0, 0, 0]; a=[0, 0, a2]; b=[0, 0, 0];
dx=[a1/2, a2/2, a3/2]; dy=[ 0, 0, 0]; dz=[ 0, 0, 0]; m=[1.5, 3, 5];
Icxx=zeros(n,1); Icyy=zeros(n,1); Iczz=zeros(n,1);
Icxy=zeros(n,1); Icyz=zeros(n,1); Iczx=zeros(n,1);
Iczz(1)=(1/12)*m(1)*al(1)*al(1); Iczz(2)=(1/12)*m(2)*al(2)*al(2);
Iczz(3)=(1/12)*m(3)*al(3)*al(3); Icyy=Iczz;
g=[0 ; -9.81; 0]; aj=[1, 0, 0]; Tp=4/3; ts=0.01;
"""
BOOK_START = """function [y0,ti,tf,incr,rtol,atol,step,int_type]=initials()
%1: Initial Conditions: State variables q and dq, and actuator
energy E_act
th=[0 0.9844 4.3144];
dth=[4.7124 1.4045 -0.0000];
E_act=0; y0=[th, dth, E_act]; ti=0; tf=1.33;
"""


def test_the_book_s_tables_10_3_8_and_9(tmp_path: Path) -> None:
    """The four-bar of the book closes with the angles of table 10.8 and moves as the built-in one;
    without them it stays open.
    """
    (tmp_path / "inputs.m").write_text(BOOK_BARS)
    (tmp_path / "jacobian.m").write_text(BARS.replace(" r dx", " dx"))
    with pytest.warns(UserWarning, match=r"th, .* is missing; it is read from initials\.m, too"):
        assert not rf.load(tmp_path / "inputs.m").loops
    (tmp_path / "initials.m").write_text(BOOK_START)
    with pytest.warns(UserWarning, match=r"in another order .* here they go by name"):
        m = rf.load(tmp_path / "inputs.m")
    assert [x.level for x in m.metadata["report"] if x.where == "initials.m"] == ["note"]
    np.testing.assert_allclose(m.bodies[1].joint.placement.position, [-0.0895, 0, 0], atol=5e-5)
    q, known = m.assemble().q, rf.load("four_bar")
    np.testing.assert_allclose(q, [0.0, 0.9844, 4.3144], atol=1e-4)
    home = known.assemble({known.coordinates[0]: 0.0}).q
    found, right = (x.inverse_dynamics(s, 0 * s, 0 * s) for x, s in ((m, q), (known, home)))
    np.testing.assert_allclose(np.abs(found).max(), np.abs(right).max(), rtol=1e-3)


def test_the_book_s_table_10_10(tmp_path: Path) -> None:
    """The planar biped, corrected as the errata say; without alt, links reach to both sides of
    their mass centres: the feet are those of the built-in robot.
    """
    legs = ", ".join(["0.5, 0.5, 0.15"] * 2)
    (tmp_path / "inputs.m").write_text(
        "function [dof s n_s n_l n_j bt al alp a b dx dy dz m g Icxx Icyy Iczz Icxy Icyz Iczx"
        " g_prop]=inputs()\n"
        f"dof=12; s=3; n_s=[1, 3, 3]\nn_l=sum(n_s); n=n_l; al=[0.5, {legs},];\n"
        "bt=[0, 1, 2, 3, 1, 5, 6]; n_j=[6, 1, 1, 1, 1, 1, 1]; alp=zeros(n,1); b=alp; dy=b; dz=b;\n"
        "a=[0, 0.25, 0.5, 0.5, 0.25, 0.5, 0.5]; dx=[ 0, 0.5/2, 0.5/2, 0, 0.5/2, 0.5/2, 0];\n"
        "m=[5, 1, 1, 0.2, 1, 1, 0.2]; g=[0 ; -9.81; 0]; Icxy=b; Icyz=b; Iczx=b; Icxx=b;\n"
        "for i=1:n\nIcyy(i)=(1/12)*m(i)*al(i)*al(i); Iczz(i)=Icyy(i);\nend\n"
        "Icxx(1)=(1/12)*m(1)*0.1*0.1; Icyy(1)=(1/12)*m(1)*(0.5*0.5+0.1*0.1);\n"
        "K=2000; odf=10; Cv=odf*2*sqrt(K*sum(m)); vz_max=4.5; mu=.7;ch=1000; gr=[2, 1, 3];\n"
        "g_prop=[K, Cv, vz_max, mu, ch, gr];\n"
    )
    m = rf.load(tmp_path / "inputs.m")
    assert "alt: missing" in str(m.metadata["report"])
    known = rf.load("planar_biped")
    for foot in (3, 6):
        ends, right = ([at for _, at in x.bodies[foot].points] for x in (m, known))
        np.testing.assert_allclose(ends, right, atol=1e-15)
    np.testing.assert_allclose(m.mass, known.mass)


ORDER = "n dof type alp a b th bt r dx dy dz m g Icxx Icyy Iczz Icxy Icyz Iczx aj al"


@pytest.mark.parametrize("last", ["aj al", "al aj", "aj"])
def test_values_of_inputs_go_by_position(last: str, tmp_path: Path) -> None:
    """jacobian.m may call the lengths aj: MATLAB does not ask for names. So does for_kine.m."""
    text = "".join(
        f"{name} = {np.ravel(value).tolist()};\n"
        for name, value in numbers("hoken_fourbar").items()
        if name not in ("aj", "type")  # type is not returned below
    )
    known = ORDER.replace("type ", "").removesuffix("aj al")
    (tmp_path / "inputs.m").write_text(
        f"function [{known}al aj] = inputs()\n{text}aj=[1 0 0]; type=1;"
    )
    J = BARS.replace(ORDER, known + last)
    (tmp_path / "jacobian.m").write_text(J if last == "al aj" else J.replace("al(", "aj("))
    if last == "aj al":  # aj(2) is 0 by name
        (tmp_path / "for_kine.m").write_text(
            f"function so = for_kine(q)\n[{known}{last}] = inputs();\nso(:,2)=[-al(1)*0.0895;0;0];"
        )
        with pytest.warns(UserWarning, match=r"for_kine\.m: it takes .* in another order"):
            m = rf.load(tmp_path / "inputs.m")
    else:
        m = rf.load(tmp_path / "inputs.m")
    assert len(m.loops) == 1
    np.testing.assert_allclose(m.bodies[1].joint.placement.position[0], -0.0895, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dof": 2}, r"dof = 2; with its loops closed the robot has 1 degree of freedom"),
        ({"dof": 1, "type": 0}, r"dof = 1; as an open tree the robot has 3 degrees of freedom"),
        ({"th": [0.0, 1.2, 4.3144]}, r"pin1 does not close there: its ends are 0\.0\d+ m apart"),
    ],
)
def test_what_the_file_says_of_itself_is_checked(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match=message):
        m = rf.load(folder(tmp_path, "hoken_fourbar", BARS, **change))
    assert "file-doubt" in [finding.code for finding in m.check()]


@pytest.mark.parametrize("kind", [2, -1, 1.0000001])
def test_a_type_is_0_or_1(kind: float, tmp_path: Path) -> None:
    with pytest.raises(rf.ModelError, match=rf"type is {float(kind)}; it must be 0 .* or 1"):
        rf.load(folder(tmp_path, "hoken_fourbar", BARS, type=kind))
    data = numbers("hoken_fourbar")
    del data["type"]
    text = mat_bytes({"type": 1})[128:]
    packed = zlib.decompress(text[8:]).replace(struct.pack("<II", 6, 0), struct.pack("<II", 4, 0))
    (tmp_path / "inputs.mat").write_bytes(mat_bytes(data) + packed)  # a char array
    with pytest.raises(rf.ModelError, match="type must be a real numeric array, not text"):
        rf.load(tmp_path / "inputs.mat")


def test_files_beside_an_open_robot_are_not_read(tmp_path: Path) -> None:
    """But initials.m."""
    (tmp_path / "for_kine.m").write_text("th = 1;", encoding="utf-16")
    assert not rf.load(folder(tmp_path, "kuka_kr5")).loops
    with pytest.raises(rf.ModelError, match="UTF-16"):
        rf.load(folder(tmp_path, "fourbar_mechanism", BARS))
    (tmp_path / "for_kine.m").unlink()
    (tmp_path / "initials.m").write_text("th = 1;", encoding="utf-16")
    with pytest.raises(rf.ModelError, match="UTF-16"):
        rf.load(folder(tmp_path, "fourbar_mechanism", BARS))


def test_dh_rows_stay_dh_rows(tmp_path: Path) -> None:
    m = rf.load(folder(tmp_path, "kuka_kr5"))
    text = to_yaml(m)
    assert text.count("    dh: {alpha:") == 6
    assert "frame:" not in text.replace("frame: {}", "")
    (tmp_path / "kuka.yaml").write_text(text)
    assert rf.load(tmp_path / "kuka.yaml").skeleton == m.skeleton
    moved = from_variables(variables("pppr_robot"))
    (tmp_path / "pppr.yaml").write_text(to_yaml(moved))
    assert rf.load(tmp_path / "pppr.yaml").skeleton == moved.skeleton


# ---- what is beside inputs ----


def test_the_report_names_the_files_that_are_there(tmp_path: Path) -> None:
    """A report that names a torque.m which nobody has sends people looking for it."""
    path = folder(tmp_path, "kuka_kr5")
    assert ".m:" not in str(rf.load(path).metadata["report"])
    (tmp_path / "torque.m").write_text("anything")
    text = str(rf.load(path).metadata["report"])
    assert "ignored: torque.m: a control law" in text
    assert "trajectory.m" not in text


def test_commands_that_only_print_are_named() -> None:
    text = "function [n a] = inputs()\nclc; n = 1;\ndisp(n), hold = 3;\n"
    program = parse_matlab(text, "inputs.m")
    assert program.skipped == ("clc", "disp")
    assert [statement.target for statement in program.statements] == ["n", "hold"]


def test_multipliers_of_the_import_are_forces_in_other_axes(tmp_path: Path) -> None:
    """ReDySim's λ, of the rows of jacobian.m in world axes, is what loop_forces gives."""
    m = rf.load(folder(tmp_path, "hoken_fourbar", BARS))
    state = m.assemble({"joint1": 0.7}, rates={"joint1": 2.0}, accelerations={"joint1": 1.0})
    lam = m.inverse_dynamics(*state, multipliers=True)[1]
    given = {key: np.reshape(value, (-1, 1)) for key, value in numbers("hoken_fourbar").items()}
    J = jacobian_function(BARS, "jacobian.m", given)(
        state.q
    )  # velocity of the coupler less the crank
    force = m.loop_forces(state.q, lam)[0, 3:5]
    assert m.loops[0].second.link == "link3"
    np.testing.assert_allclose(J.T @ force, m.constraints(state.q).J.T @ lam, atol=1e-9)


@pytest.mark.parametrize("metre", [1e-4, 1.0, 1e3])
def test_a_pin_on_the_ground_is_closed_at_any_scale(metre: float) -> None:
    """J says nothing of where the ground is: the pin goes where the posture has it, in mm as in km,
    unless it is there but for rounding.
    """
    tree = PlaneTree(
        [(0.0, 0.0, 0.0, 0.0), (0.0, 0.4 * metre, 0.0, 0.0)], [-1, 0], [True, True], {}
    )
    th, at = np.array([0.3, 0.5]), np.array([0.2 * metre, 0.0, 0.0])
    frame = tree.frames(th)[1]
    there = frame.position + frame.rotation @ at
    for off, closed in ((0.05, True), (2e-4, False)):
        ground = there + off * metre * np.array([1.0, -1.0, 0.0])
        (loop,), moved, gaps = loops_of_pins(
            [PinClosure(1, None, at, ground)], tree, th, ["a", "b"]
        )
        assert not moved
        assert not gaps
        place = np.asarray(loop.second.frame.position)
        np.testing.assert_allclose(place, there if closed else ground, rtol=0.0, atol=1e-12 * metre)


def test_the_advice_names_one_link_whose_hinge_is_missing(tmp_path: Path) -> None:
    """With the other link's hinge in for_kine.m, which is read where there is a jacobian.m."""
    with pytest.warns(UserWarning, match="loops are open here") as told:
        rf.load(folder(tmp_path, "robotic_leg", LEG, "so(:,4)=[0.070;-0.030;0];"))
    assert "say where link2 hangs on the ground" in str(told[0].message)
