// Plots on canvas: curves over time (or over one another), ticks, a legend that hides and shows, and the cursor of the page's time.
"use strict";

const LINES = ["#2d5bd3", "#ea672a", "#2f9e58", "#7d42a7", "#b83a0d", "#cc4d7c", "#6f8fae", "#6b513c"]; // they differ for colour-blind readers too

const curveColour = (k) => (k < LINES.length ? LINES[k] : `hsl(${(k * 137.5) % 360} 58% 52%)`);

// round steps: 1, 2 or 5 times a power of ten
function ticks(low, high, most) {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return { found, step };
}

function figure(x, step = 0) {
  if (!Number.isFinite(x)) return "–";
  if (x === 0 || Math.abs(x) < 1e-9 * step) return "0";
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) return x.toExponential(step ? 0 : 2).replace("e+", "e").replace("-", "−").replace("e-", "e−");
  const digits = step ? Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) : Math.max(0, 3 - Math.floor(Math.log10(size)));
  return x.toFixed(Math.min(digits, 8)).replace("-", "−");
}

function download(name, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind === "SVG" ? "image/svg+xml" : "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Takes the strokes and texts that a canvas takes, and writes them as SVG.
class Drawing {
  constructor(w, h, paper) {
    Object.assign(this, { size: [w, h], paper, parts: [], path: "", clips: 0, at: [0, 0], dash: [], globalAlpha: 1, pen: document.createElement("canvas").getContext("2d") });
  }
  set font(value) { this.pen.font = value; this.fontText = value; }
  escape(text) { return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]); }
  measureText(text) { return this.pen.measureText(text); }
  move(x, y) { this.at = [x, y]; }
  place(x, y) { return `${(x + this.at[0]).toFixed(2)} ${(y + this.at[1]).toFixed(2)}`; }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${this.place(x, y)}`; }
  lineTo(x, y) { this.path += `L${this.place(x, y)}`; }
  rect(x, y, w, h) { this.path += `M${this.place(x, y)}h${w.toFixed(2)}v${h.toFixed(2)}h${(-w).toFixed(2)}z`; }
  setLineDash(dash) { this.dash = dash; }
  save() {}
  clip() { this.parts.push(`<clipPath id="c${++this.clips}"><path d="${this.path}"/></clipPath><g clip-path="url(#c${this.clips})">`); }
  restore() { this.parts.push("</g>"); }
  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-opacity="${this.globalAlpha}" stroke-linejoin="round"${dash}/>`);
  }
  fillText(text, x, y) {
    const anchor = { right: "end", center: "middle" }[this.textAlign] || "start", lower = { middle: "0.35em", top: "0.8em" }[this.textBaseline] || "0";
    const [left, top] = this.place(x, y).split(" ");
    this.parts.push(`<text x="${left}" y="${top}" dy="${lower}" text-anchor="${anchor}" fill="${this.fillStyle}">${this.escape(text)}</text>`);
  }
  text() {
    const [w, h] = this.size;
    return `<svg xmlns="${document.querySelector("svg").namespaceURI}" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" style="font: ${this.escape(this.fontText)}"><rect width="${w}" height="${h}" fill="${this.paper}"/>${this.parts.join("")}</svg>\n`;
  }
}

class Plot {
  // data: {title, unit, log, limit, curves: [{name, y, x?, wanted?}], x?: {name, unit}}; page: {t, seek, css}
  constructor(place, data, page) {
    this.data = data;
    this.page = page;
    this.curves = data.curves.map((curve, k) => ({ ...curve, colour: curveColour(k), shown: true }));
    this.build(place);
  }

  build(place) {
    const make = (tag, name, parent) => {
      const element = document.createElement(tag);
      if (name) element.className = name;
      parent.append(element);
      return element;
    };
    this.figure = make("figure", "plot", place);
    const caption = make("figcaption", "", this.figure);
    make("b", "", caption).textContent = this.data.title;
    if (this.data.unit) make("span", "unit", caption).textContent = this.data.unit;
    const save = make("span", "save", caption);
    for (const [kind, write] of [["SVG", () => this.svg()], ["CSV", () => this.csv()]]) {
      const button = make("button", "", save);
      button.type = "button";
      button.textContent = kind;
      button.title = kind === "SVG" ? "save this plot as a picture" : "save the numbers of this plot as a table";
      button.setAttribute("aria-label", `${button.title}: ${this.data.title}`);
      button.addEventListener("click", () => download(`${this.data.title.toLowerCase().replace(/[^a-z0-9]+/g, "_")}.${kind.toLowerCase()}`, write(), kind));
    }
    const box = make("div", "canvas", this.figure);
    this.canvas = make("canvas", "", box);
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${this.data.title}, ${this.data.unit || ""}, ${this.curves.map((c) => c.name).join(", ")}`);
    this.marks = make("canvas", "marks", box);
    this.legend = make("div", "legend", this.figure);
    for (const curve of this.curves) {
      const button = make("button", "", this.legend);
      button.type = "button";
      button.title = "click: hide or show; double click: this one alone";
      button.setAttribute("aria-pressed", "true");
      make("i", curve.dashed ? "dashed" : "", button).style.color = curve.colour;
      make("span", "", button).textContent = curve.name;
      curve.value = make("output", "", button);
      curve.button = button;
      button.addEventListener("click", () => this.show(curve, !curve.shown));
      button.addEventListener("dblclick", () => {
        const alone = this.curves.every((other) => other === curve || !other.shown);
        for (const other of this.curves) this.show(other, alone || other === curve);
      });
    }
    if (this.curves.some((curve) => curve.wanted)) make("span", "key", this.legend).textContent = "dashed: desired";
    const seek = (event) => {
      if (this.data.x) return;
      const box = this.canvas.getBoundingClientRect(), { left, right, from, to } = this.frame;
      this.page.seek(from + ((event.clientX - box.left - left) / (right - left)) * (to - from));
    };
    this.marks.addEventListener("pointerdown", (event) => {
      this.marks.setPointerCapture(event.pointerId);
      seek(event);
    });
    this.marks.addEventListener("pointermove", (event) => { if (event.buttons & 1) seek(event); });
  }

  show(curve, shown) {
    curve.shown = shown;
    curve.button.setAttribute("aria-pressed", String(shown));
    this.draw();
    this.cursor();
  }

  // ---- the curves ----

  range(key, wanted) {
    let low = Infinity, high = -Infinity;
    for (const curve of this.curves) {
      if (!curve.shown) continue;
      for (const values of wanted ? [curve[key], curve[wanted]] : [curve[key]])
        if (values) for (const x of values) if (Number.isFinite(x) && (!this.data.log || key !== "y" || x > 0)) {
          if (x < low) low = x;
          if (x > high) high = x;
        }
    }
    return [low, high];
  }

  limits() {
    let [low, high] = this.range("y", "wanted");
    if (this.data.log) {
      if (this.data.limit > 0) high = Math.max(high, this.data.limit);
      if (!(high > 0)) [low, high] = [1e-16, 1];
      low = Math.max(low, 1e-14 * high);
      return [Math.floor(Math.log10(low)), Math.max(Math.ceil(Math.log10(high)), Math.floor(Math.log10(low)) + 1)];
    }
    if (this.data.fit) [low, high] = [Math.max(low, this.data.fit[0]), Math.min(high, this.data.fit[1])];
    if (!(high >= low)) [low, high] = [-1, 1];
    const least = Math.max(1e-12, 1e-9 * Math.max(Math.abs(low), Math.abs(high)));
    if (high - low < least) [low, high] = [low - 1, high + 1];  // constant but for rounding: a flat line
    const pad = 0.06 * (high - low);
    return [low - pad, high + pad];
  }

  draw() {
    const box = this.canvas.parentElement.getBoundingClientRect(), dpr = Math.min(3, this.page.sharp || window.devicePixelRatio || 1);
    if (!box.width) return;
    const [w, h] = this.page.still ? [340, 175] : [box.width, box.height];  // on paper: the style sheet's shape
    for (const canvas of [this.canvas, this.marks]) {
      canvas.width = Math.round(w * dpr);
      canvas.height = Math.round(h * dpr);
    }
    const c = this.canvas.getContext("2d");
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    this.paint(c, w, h, dpr);
  }

  // the plot on a canvas of w by h, or on anything that takes the same strokes and texts
  paint(c, w, h, dpr) {
    const css = this.page.css;
    c.font = css.font;
    const [low, high] = this.limits(), log = this.data.log;
    const vertical = log ? ticks(low, high, 6) : ticks(low, high, Math.max(3, h / 38));
    if (log) vertical.found = vertical.found.filter((x) => Number.isInteger(x));
    const label = (y) => (log ? `1e${y}`.replace("-", "−") : figure(y, vertical.step));
    const left = Math.max(34, ...vertical.found.map((y) => c.measureText(label(y)).width + 12));
    let [from, to] = this.data.x ? this.range("x") : [this.page.t[0], this.page.t[this.page.t.length - 1]];
    if (this.data.x) {
      const pad = 0.05 * (to - from) || 1;
      [from, to] = [from - pad, to + pad];
    } else if (!(to > from)) [from, to] = [from - 0.5, from + 0.5];
    const f = this.frame = { left, right: w - 10, top: 8, bottom: h - (this.data.x ? 34 : 22), from, to, low, high, dpr };
    const X = this.X = (x) => f.left + ((x - f.from) / (f.to - f.from)) * (f.right - f.left);
    const Y = this.Y = (y) => f.bottom - (((log ? Math.log10(y) : y) - f.low) / (f.high - f.low)) * (f.bottom - f.top);
    c.lineWidth = 1;
    c.fillStyle = css.soft;
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const y of vertical.found) {
      const at = Math.round(log ? Y(10 ** y) : Y(y)) + 0.5;
      c.strokeStyle = !log && y === 0 ? css.axis : css.rule;
      c.beginPath(); c.moveTo(f.left, at); c.lineTo(f.right, at); c.stroke();
      c.fillText(label(y), f.left - 6, at);
    }
    const across = ticks(from, to, Math.max(3, w / 90));
    c.textBaseline = "top";
    c.strokeStyle = css.rule;
    across.found.forEach((x, i) => {
      const at = Math.round(X(x)) + 0.5, last = i === across.found.length - 1 && !this.data.x;
      c.textAlign = at > f.right - 16 ? "right" : "center";
      c.beginPath(); c.moveTo(at, f.top); c.lineTo(at, f.bottom); c.stroke();
      c.fillText(figure(x, across.step) + (last ? " s" : ""), Math.min(at, f.right), f.bottom + 6);
    });
    if (this.data.x) {
      c.textAlign = "right";
      c.fillText(`${this.data.x.name}, ${this.data.x.unit}`, f.right, f.bottom + 20);
    }
    c.save();
    c.beginPath();
    if (this.data.fit) c.rect(f.left, f.top, f.right - f.left, f.bottom - f.top);  // curves may leave the axis
    else c.rect(f.left, 0, f.right - f.left, h);
    c.clip();
    if (log && this.data.limit > 0) this.stroke(c, [from, to], [this.data.limit, this.data.limit], css.alarm, 1.2, [6, 4]);
    for (const curve of this.curves) {
      if (!curve.shown) continue;
      const x = curve.x || this.page.t;
      if (curve.wanted) this.stroke(c, curve.wantedX || x, curve.wanted, curve.colour, 2.2, [5, 4], 0.6);
      this.stroke(c, x, curve.y, curve.colour, 1.5, curve.dashed ? [5, 4] : []);
    }
    c.restore();
  }

  stroke(c, x, y, colour, width, dash, alpha = 1) {
    c.strokeStyle = colour;
    c.globalAlpha = alpha;
    c.lineWidth = width;
    c.lineJoin = "round";
    c.setLineDash(dash);
    c.beginPath();
    // more points than pixels: of each column of pixels the first, least, largest and last are enough
    const thin = !this.data.x && y.length > 3 * (this.frame.right - this.frame.left);
    let down = false, column = NaN, least = 0, most = 0, lastY = 0, lastX = 0;
    const flush = () => { if (thin && down && !Number.isNaN(column)) { c.lineTo(lastX, least); c.lineTo(lastX, most); c.lineTo(lastX, lastY); } };
    for (let i = 0; i < y.length; i++) {
      const px = this.X(x[i]), py = this.Y(y[i]);
      if (!Number.isFinite(py)) { flush(); down = false; column = NaN; continue; }
      if (!down) { c.moveTo(px, py); down = true; column = Math.round(px); least = most = py; }
      else if (!thin) c.lineTo(px, py);
      else if (Math.round(px) !== column) { flush(); c.lineTo(px, py); column = Math.round(px); least = most = py; }
      least = Math.min(least, py); most = Math.max(most, py); lastY = py; lastX = px;
    }
    flush();
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  // ---- what can be saved ----

  csv() {
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text), t = this.page.t;
    const columns = [["t [s]", t]];
    for (const curve of this.curves) {
      if (curve.x) columns.push([`${curve.name} ${this.data.x.name} [${this.data.x.unit}]`, curve.x]);
      columns.push([`${curve.name} [${this.data.unit}]`, curve.y]);
      if (curve.wanted) columns.push([`${curve.name} desired [${this.data.unit}]`, curve.wanted]);
    }
    const rows = Array.from(t, (_, i) => columns.map(([, values]) => (Number.isFinite(values[i]) ? String(values[i]) : "")).join(","));
    return [columns.map(([name]) => quoted(name)).join(","), ...rows].join("\n") + "\n";
  }

  svg() {
    const w = 720, h = 360, shown = this.curves.filter((curve) => curve.shown), line = 18;
    const rows = Math.ceil(shown.length / 3), picture = new Drawing(w, h + 34 + line * rows, this.page.css.paper || "#fff");
    const frame = this.frame, X = this.X, Y = this.Y;
    picture.move(0, 26);
    this.paint(picture, w, h, 1);
    picture.move(0, 0);
    [this.frame, this.X, this.Y] = [frame, X, Y];  // those of the screen
    picture.fillStyle = this.page.css.ink;
    picture.textAlign = "left";
    picture.textBaseline = "top";
    picture.fillText(this.data.unit ? `${this.data.title}, ${this.data.unit}` : this.data.title, 10, 6);
    shown.forEach((curve, k) => {
      const left = 40 + (k % 3) * 225, top = h + 36 + line * Math.floor(k / 3);
      picture.strokeStyle = curve.colour;
      picture.lineWidth = 2.5;
      picture.setLineDash(curve.dashed ? [5, 4] : []);
      picture.beginPath(); picture.moveTo(left, top + 6); picture.lineTo(left + 16, top + 6); picture.stroke();
      picture.fillText(curve.name, left + 22, top);
    });
    return picture.text();
  }

  // ---- the cursor ----

  cursor() {
    if (!this.frame || !this.canvas.width || !this.figure.offsetParent) return;
    const c = this.marks.getContext("2d"), { page, frame } = this, { row, share, time } = page.now;
    c.setTransform(frame.dpr, 0, 0, frame.dpr, 0, 0);
    c.clearRect(0, 0, this.marks.width, this.marks.height);
    if (page.still) return;
    if (!this.data.x) {
      c.strokeStyle = page.css.cursor;
      c.lineWidth = 1.5;
      c.beginPath(); c.moveTo(this.X(time), frame.top); c.lineTo(this.X(time), frame.bottom); c.stroke();
    }
    const next = Math.min(row + 1, page.t.length - 1);
    for (const curve of this.curves) {
      const at = (values) => (share ? (1 - share) * values[row] + share * values[next] : values[row]);
      const y = at(curve.y);
      curve.value.textContent = figure(this.data.log || Math.abs(y) > 1e-9 * (frame.high - frame.low) ? y : 0);
      if (!curve.shown || !Number.isFinite(this.Y(y))) continue;
      c.fillStyle = curve.colour;
      c.beginPath(); c.arc(curve.x ? this.X(at(curve.x)) : this.X(time), this.Y(y), this.data.x ? 5 : 3.2, 0, 7); c.fill();
    }
  }
}
