// The report's page: one time, which the slider, the keys, the animation and the plots share.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const reduced = matchMedia("(prefers-reduced-motion: reduce)"), dark = matchMedia("(prefers-color-scheme: dark)");
  const floats = (text) => numbers(text, Float32Array);

  data.frames.t = Array.from(numbers(data.frames.t, Float64Array));
  data.frames.place = floats(data.frames.place);
  data.frames.turn = Float32Array.from(numbers(data.frames.turn, Int16Array), (x) => x / 32767);
  if (data.ghost) data.ghost = { place: floats(data.ghost.place), turn: Float32Array.from(numbers(data.ghost.turn, Int16Array), (x) => x / 32767) };
  if (data.forces) for (const key of ["force", "place"]) data.forces[key] = floats(data.forces[key]);
  const arrays = data.arrays.map(floats);
  for (const plot of data.plots) for (const curve of plot.curves)
    for (const key of ["y", "x", "wanted", "wantedX"]) if (key in curve) curve[key] = arrays[curve[key]];

  const t = numbers(data.t, Float64Array), start = t[0], end = t[t.length - 1];
  const page = { t, now: { row: 0, share: 0, time: start }, playing: false, speed: 1, css: {}, still: false };
  let scene = null, plots = [], asked = false;

  // ---- time ----

  function locate(time) {
    let low = 0, high = t.length - 1;
    if (time >= t[high]) return { row: high, share: 0, time: t[high] };
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (t[middle] <= time) low = middle; else high = middle;
    }
    return { row: low, share: high > low ? Math.max(0, (time - t[low]) / (t[high] - t[low])) : 0, time: Math.max(time, start) };
  }

  page.seek = (time) => {
    page.now = locate(Math.min(end, Math.max(start, time)));
    redraw();
  };

  function redraw() {
    if (!asked) {
      asked = true;
      requestAnimationFrame(show);
    }
  }

  function show() {
    asked = false;
    const { time } = page.now;
    $("time").value = String(end > start ? (time - start) / (end - start) : 0);
    $("time").setAttribute("aria-valuetext", `${time.toFixed(3)} seconds of ${end.toFixed(3)}`);
    $("clock").textContent = `${time.toFixed(2)} s`;
    if (scene) {
      scene.setTime(time);
      scene.draw();
    }
    for (const plot of plots) plot.cursor();
    if (!page.playing) remember();
  }

  // ---- the link: time, tab and camera, so that who opens it sees what you see ----

  let later = 0, group = "";
  function remember() {
    clearTimeout(later);
    later = setTimeout(() => {
      const words = [`t=${+page.now.time.toFixed(4)}`, `tab=${encodeURIComponent(group)}`];
      if (scene) {
        const { yaw, pitch, far, target } = scene.camera;
        words.push(`view=${[yaw, pitch, far, ...target].map((x) => +x.toFixed(4)).join(",")}`);
      }
      if (document.body.classList.contains("slides")) words.push("slides");
      if (window === window.top) history.replaceState(null, "", `#${words.join("&")}`);  // a frame has no link
    }, 300);
  }

  function recall() {
    const words = new Map(location.hash.slice(1).split("&").map((word) => word.split("=")));
    const tab = decodeURIComponent(words.get("tab") || "");
    if (groups.includes(tab)) choose(tab);
    const view = (words.get("view") || "").split(",").map(Number);
    if (scene && view.length === 6 && view.every(Number.isFinite)) {
      const [yaw, pitch, far, ...target] = view;
      Object.assign(scene.camera, { yaw, pitch, far, target });
    }
    if (words.has("slides")) slides(true);
    const time = Number(words.get("t"));
    if (words.has("t") && Number.isFinite(time)) {
      const camera = scene && { ...scene.camera };
      page.seek(time);
      if (scene) { scene.setTime(page.now.time); Object.assign(scene.camera, camera); }
    }
    if (words.has("play") && !reduced.matches) play(true);
  }

  const slides = (on) => { document.body.classList.toggle("slides", on); resize(); };

  let before = 0;
  function play(on) {
    if (on && page.now.time >= end) page.seek(start);
    page.playing = on && end > start;
    $("play").setAttribute("aria-pressed", String(page.playing));
    $("play").setAttribute("aria-label", page.playing ? "Pause" : "Play");
    before = 0;
    if (page.playing) requestAnimationFrame(tick);
  }

  function tick(now) {
    if (!page.playing) return;
    const passed = before ? Math.min(0.1, (now - before) / 1000) * page.speed : 0;
    before = now;
    let time = page.now.time + passed;
    if (time >= end) {
      if ($("loop").checked) time = start;
      else { page.seek(end); play(false); return; }
    }
    page.now = locate(time);
    show();
    requestAnimationFrame(tick);
  }

  // ---- looks ----

  function theme(name) {
    if (name) document.documentElement.dataset.theme = name;
    const style = getComputedStyle(document.documentElement), of = (key) => style.getPropertyValue(`--${key}`).trim();
    Object.assign(page.css, { ink: of("ink"), paper: of("card"), soft: of("soft"), rule: of("rule"), axis: of("axis"), cursor: of("cursor"), alarm: of("alarm") });
    page.css.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
    if (scene) Object.assign(scene.paint, {
      paper: hexColour(of("stage")), plate: hexColour(of("plate")), ink: hexColour(of("grid")),
      bright: Number(of("bright")), dark: Number(of("shade")),
    });
    for (const plot of plots) plot.draw();
    redraw();
  }

  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";

  function resize() {
    if (scene) {
      const box = $("scene").parentElement.getBoundingClientRect(), dpr = Math.min(2, window.devicePixelRatio || 1);
      $("scene").width = Math.max(1, Math.round(box.width * dpr));
      $("scene").height = Math.max(1, Math.round(box.height * dpr));
    }
    for (const plot of plots) plot.draw();
    redraw();
  }

  // ---- plots ----

  const groups = [...new Set(data.plots.flatMap((plot) => plot.groups))];
  function choose(name) {
    group = name;
    for (const tab of $("tabs").children) {
      tab.setAttribute("aria-selected", String(tab.textContent === group));
      tab.tabIndex = tab.textContent === group ? 0 : -1;
    }
    plots.forEach((plot) => { plot.figure.hidden = !plot.data.groups.includes(group); });
    resize();
  }

  for (const group of groups) {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.setAttribute("role", "tab");
    tab.textContent = group;
    tab.addEventListener("click", () => choose(group));
    $("tabs").append(tab);
  }
  $("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], list = [...$("tabs").children];
    if (!step) return;
    const next = list[(list.indexOf(document.activeElement) + step + list.length) % list.length];
    next.click();
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  });
  plots = data.plots.map((plot) => new Plot($("plots"), plot, page));

  // ---- the scene ----

  try {
    scene = new Scene($("scene"), data);
  } catch (error) {
    $("scene").hidden = true;
    $("nogl").hidden = false;
    $("nogl").textContent = error.message;
  }

  function option(id, key) {
    const box = $(id);
    box.checked = Boolean(scene && scene.options[key]);
    box.addEventListener("change", () => {
      scene.options[key] = box.checked;
      redraw();
    });
  }

  function pointers(canvas) {
    const down = new Map();
    let apart = 0;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, [event.clientX, event.clientY]);
      apart = 0;
    });
    const up = (event) => { down.delete(event.pointerId); apart = 0; };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointermove", (event) => {
      const old = down.get(event.pointerId);
      if (!old) return;
      const dx = event.clientX - old[0], dy = event.clientY - old[1], size = canvas.clientHeight;
      down.set(event.pointerId, [event.clientX, event.clientY]);
      if (down.size === 2) {
        const [[ax, ay], [bx, by]] = [...down.values()], now = Math.hypot(ax - bx, ay - by);
        if (apart) scene.zoom(apart / now);
        apart = now;
        scene.pan(dx / size / 2, dy / size / 2);
      } else if (event.shiftKey || event.buttons & 6) scene.pan(dx / size, dy / size);
      else scene.turn(dx * 0.008, dy * 0.008);
      redraw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      scene.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(0.3, Math.abs(event.deltaY) * 0.0015)));
      redraw();
    }, { passive: false });
    canvas.addEventListener("dblclick", () => { scene.reset(); redraw(); });
  }

  if (scene) {
    pointers($("scene"));
    for (const [id, key] of [["follow", "follow"], ["frames", "frames"], ["modules", "modules"]]) option(id, key);
    $("forces").parentElement.hidden = !data.forces;
    if (data.forces) option("forces", "forces");
    $("ghost").parentElement.hidden = !data.ghost;
    if (data.ghost) option("ghost", "ghost");
    data.points.forEach((point, k) => $("trail").append(new Option(point.name, String(k))));
    $("trail").addEventListener("change", () => { scene.options.trail = Number($("trail").value); redraw(); });
    for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => {
      const [yaw, pitch] = { side: [-Math.PI / 2, 0.02], front: [0, 0.02], top: [-Math.PI / 2, 1.55] }[button.dataset.view] || [];
      scene.reset(yaw, pitch);
      redraw();
    });
  }

  // ---- controls ----

  const seekShare = () => { page.seek(start + Number($("time").value) * (end - start)); };
  $("time").addEventListener("input", seekShare);
  $("play").addEventListener("click", () => play(!page.playing));
  $("speed").addEventListener("change", () => { page.speed = Number($("speed").value); });
  $("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  dark.addEventListener("change", () => theme());
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", async () => {
    const text = $(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren($(button.dataset.copy));
    }
  });

  const click = (id) => { if (!$(id).parentElement.hidden) $(id).click(); };
  const step = (share, rows) => { play(false); page.seek(share ? page.now.time + share * (end - start) : t[Math.min(t.length - 1, Math.max(0, page.now.row + rows + (rows < 0 && page.now.share ? 1 : 0)))]); };
  const keys = {
    " ": () => play(!page.playing), k: () => play(!page.playing),
    Home: () => page.seek(start), End: () => page.seek(end),
    ArrowRight: (shift) => step(shift ? 0.1 : 0, 1), ArrowLeft: (shift) => step(shift ? -0.1 : 0, -1),
    PageUp: () => step(0.1), PageDown: () => step(-0.1),
    "+": () => faster(1), "-": () => faster(-1),
    f: () => click("follow"), j: () => click("frames"), c: () => click("forces"), m: () => click("modules"),
    r: () => { if (scene) scene.reset(); redraw(); }, d: () => $("theme").click(), "?": showKeys,
    s: () => slides(!document.body.classList.contains("slides")), g: () => click("ghost"),
  };

  function showKeys() {
    if ($("keys").open) $("keys").close();
    else $("keys").showModal();
  }
  $("help").addEventListener("click", showKeys);
  $("close-keys").addEventListener("click", showKeys);
  $("keys").addEventListener("click", (event) => { if (event.target === $("keys")) $("keys").close(); });  // beside it

  function faster(direction) {
    const list = $("speed").options, next = $("speed").selectedIndex + direction;
    if (next >= 0 && next < list.length) {
      $("speed").selectedIndex = next;
      page.speed = Number($("speed").value);
    }
  }

  const plays = (on) => on.id === "play" || on.getAttribute("role") === "tab";  // arrows or a click have chosen the tab already
  document.addEventListener("keydown", (event) => {
    const on = event.target, kind = on.tagName;
    if (event.ctrlKey || event.metaKey || event.altKey || kind === "SELECT" || kind === "TEXTAREA") return;
    if (kind === "INPUT" && on.type !== "range" && event.key === " ") return;
    if ((kind === "BUTTON" || kind === "SUMMARY") && event.key === " " && !plays(on)) return;
    const act = keys[event.key] || keys[event.key.toLowerCase()];
    if (!act || ($("keys").open && event.key !== "?")) return;
    event.preventDefault();
    act(event.shiftKey);
  });
  document.addEventListener("keyup", (event) => {  // the button's own press must not follow ours
    if (event.key === " " && plays(event.target)) event.preventDefault();
  });

  // ---- print: everything at once, in the light colours, with a strip of pictures in place of the animation ----

  let kept = null;
  function strip() {
    const place = $("strip"), width = 460, height = 360;
    place.textContent = "";
    if (!scene) return;
    const canvas = $("scene"), old = [canvas.width, canvas.height], time = page.now.time;
    [canvas.width, canvas.height] = [width, height];
    for (let k = 0; k < 6; k++) {
      const at = start + (k / 5) * (end - start), picture = new Image(), box = document.createElement("figure");
      scene.setTime(at);
      scene.draw();
      picture.src = canvas.toDataURL("image/png");
      picture.alt = `the robot at ${at.toFixed(2)} s`;
      const words = document.createElement("figcaption");
      words.textContent = `${at.toFixed(2)} s`;
      box.append(picture, words);
      place.append(box);
    }
    [canvas.width, canvas.height] = old;
    scene.setTime(time);
  }

  addEventListener("beforeprint", () => {
    play(false);
    kept = { theme: document.documentElement.dataset.theme, hidden: plots.map((plot) => plot.figure.hidden) };
    plots.forEach((plot) => { plot.figure.hidden = false; });
    page.still = true;
    page.sharp = 2;
    document.documentElement.classList.add("printing");
    theme("light");
    strip();
    show();
  });
  addEventListener("afterprint", () => {
    if (!kept) return;
    page.still = false;
    page.sharp = 0;
    document.documentElement.classList.remove("printing");
    plots.forEach((plot, k) => { plot.figure.hidden = kept.hidden[k]; });
    $("strip").textContent = "";
    if (kept.theme) theme(kept.theme);
    else { delete document.documentElement.dataset.theme; theme(); }
    resize();
  });

  // ---- start ----

  new ResizeObserver(resize).observe($("stage"));
  choose(groups[0]);
  theme();
  resize();
  show();
  recall();
  window.report = { page, scene, plots, play };
})();
