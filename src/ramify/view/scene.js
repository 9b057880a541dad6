// A small renderer in WebGL 2: bodies as triangles under one light, their shadows on a floor, lines, arrows; a camera to turn.
"use strict";

const M4 = {
  multiply(a, b) {
    const out = new Float32Array(16);
    for (let c = 0; c < 4; c++)
      for (let r = 0; r < 4; r++)
        out[4 * c + r] = a[r] * b[4 * c] + a[4 + r] * b[4 * c + 1] + a[8 + r] * b[4 * c + 2] + a[12 + r] * b[4 * c + 3];
    return out;
  },
  perspective(fov, aspect, near, far) {
    const f = 1 / Math.tan(fov / 2), d = 1 / (near - far);
    return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (near + far) * d, -1, 0, 0, 2 * near * far * d, 0]);
  },
  lookAt(eye, target) {
    const z = V3.unit(V3.sub(eye, target)), x = V3.unit(V3.cross([0, 0, 1], z)), y = V3.cross(z, x);
    return new Float32Array([x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0,
      -V3.dot(x, eye), -V3.dot(y, eye), -V3.dot(z, eye), 1]);
  },
  // rotation by a unit quaternion (w, x, y, z), position, uniform scale
  pose(q, r, s = 1) {
    const [w, x, y, z] = q;
    return new Float32Array([
      s * (1 - 2 * (y * y + z * z)), s * 2 * (x * y + w * z), s * 2 * (x * z - w * y), 0,
      s * 2 * (x * y - w * z), s * (1 - 2 * (x * x + z * z)), s * 2 * (y * z + w * x), 0,
      s * 2 * (x * z + w * y), s * 2 * (y * z - w * x), s * (1 - 2 * (x * x + y * y)), 0,
      r[0], r[1], r[2], 1]);
  },
  point(m, p) {
    return [0, 1, 2].map((i) => m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + m[12 + i]);
  },
};

const V3 = {
  sub: (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]],
  add: (a, b, k = 1) => [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]],
  dot: (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2],
  cross: (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
  size: (a) => Math.hypot(a[0], a[1], a[2]),
  unit(a) { const n = V3.size(a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; },
};

const LIGHT = V3.unit([0.45, -0.35, 1.0]);

const SHADERS = {
  solid: [`#version 300 es
    layout(location=0) in vec3 p; layout(location=1) in vec3 n;
    uniform mat4 camera, body; out vec3 world, normal;
    void main() { vec4 w = body * vec4(p, 1.0); world = w.xyz; normal = mat3(body) * n; gl_Position = camera * w; }`,
  `#version 300 es
    precision highp float;
    in vec3 world, normal; uniform vec3 colour, eye, light; uniform float bright, alpha; out vec4 shown;
    void main() {
      vec3 n = normalize(normal), v = normalize(eye - world);
      if (dot(n, v) < 0.0) n = -n;
      float sun = max(dot(n, light), 0.0), sky = 0.5 + 0.5 * n.z;
      float edge = pow(1.0 - max(dot(n, v), 0.0), 3.0);
      float gloss = pow(max(dot(n, normalize(light + v)), 0.0), 42.0);
      vec3 c = colour * (mix(0.52, 0.74, sky) + 0.36 * sun) * bright + vec3(0.16 * gloss + 0.10 * edge);
      shown = vec4(c, alpha);
    }`],
  shadow: [`#version 300 es
    layout(location=0) in vec3 p; uniform mat4 camera, body; uniform vec3 light; uniform float floorZ; out float above;
    void main() {
      vec4 w = body * vec4(p, 1.0); above = w.z - floorZ;
      gl_Position = camera * vec4(w.xy - light.xy / light.z * above, floorZ, 1.0);
    }`,
  `#version 300 es
    precision highp float;
    in float above; uniform float dark; out vec4 shown;
    void main() { if (above < 0.0) discard; shown = vec4(0.0, 0.0, 0.0, dark); }`],
  line: [`#version 300 es
    layout(location=0) in vec3 a; layout(location=1) in vec3 b;
    uniform mat4 camera; uniform vec2 view; uniform float width;
    void main() {
      vec4 A = camera * vec4(a, 1.0), B = camera * vec4(b, 1.0);
      if (A.w < 1e-4) A = mix(A, B, (1e-4 - A.w) / (B.w - A.w));
      if (B.w < 1e-4) B = mix(B, A, (1e-4 - B.w) / (A.w - B.w));
      vec2 d = (B.xy / B.w - A.xy / A.w) * view; float l = length(d);
      vec2 u = l > 1e-6 ? d / l : vec2(1.0, 0.0), across = vec2(-u.y, u.x);
      int id = gl_VertexID; vec4 P = id < 2 ? A : B;
      vec2 out_ = across * (float(id & 1) * 2.0 - 1.0) + u * (id < 2 ? -0.5 : 0.5);
      gl_Position = P + vec4(out_ * width / view * P.w, 0.0, 0.0);
    }`,
  `#version 300 es
    precision highp float; uniform vec4 ink; out vec4 shown; void main() { shown = ink; }`],
  grid: [`#version 300 es
    layout(location=0) in vec2 p; uniform mat4 camera; uniform vec3 centre; uniform float reach; out vec2 at;
    void main() { at = centre.xy + reach * p; gl_Position = camera * vec4(at, centre.z, 1.0); }`,
  `#version 300 es
    precision highp float;
    in vec2 at; uniform vec3 centre, ink, plate; uniform float reach, cell; out vec4 shown;
    float lines(vec2 x) { vec2 w = fwidth(x) + 1e-6, d = abs(fract(x - 0.5) - 0.5) / w; return 1.0 - min(min(d.x, d.y), 1.0); }
    void main() {
      float far = length(at - centre.xy) / reach, fade = smoothstep(1.0, 0.15, far);
      float fine = 0.30 * lines(at / cell) * smoothstep(0.5, 0.05, fwidth(at.x / cell)), bold = 0.5 * lines(at / (5.0 * cell));
      float k = max(fine, bold) * fade;
      shown = vec4(mix(plate, ink, k), max(k, 0.85 * fade));
    }`],
};

class Scene {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    const gl = this.gl = canvas.getContext("webgl2", { alpha: false, antialias: true, stencil: true, preserveDrawingBuffer: true });
    if (!gl) throw new Error("this browser has no WebGL 2; the plots below work without it");
    this.programs = Object.fromEntries(Object.entries(SHADERS).map(([name, pair]) => [name, this.program(...pair)]));
    this.parts = data.parts.map((part) => ({ ...part, ...this.mesh(part), rgb: hexColour(part.colour), module: hexColour(part.module) }));
    this.arrow = this.mesh(data.arrow);
    this.square = this.buffer(new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), 2);
    this.lines = { vao: gl.createVertexArray(), buffer: gl.createBuffer() };
    this.options = { follow: data.floats, frames: false, forces: true, modules: !data.painted, ghost: true, trail: -1 };
    this.paint = { paper: [1, 1, 1], plate: [0.97, 0.97, 0.97], ink: [0.5, 0.5, 0.5], plain: hexColour("#8fa3b8"), ghost: hexColour("#6b7785"), bright: 1, dark: 0.16 };
    this.poses = [];
    this.reset();
  }

  // ---- what the card holds ----

  program(vertex, fragment) {
    const gl = this.gl, made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    const at = {};
    for (let i = 0; i < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); i++) {
      const name = gl.getActiveUniform(made, i).name;
      at[name] = gl.getUniformLocation(made, name);
    }
    return { made, at };
  }

  buffer(values, size) {
    const gl = this.gl, vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, size, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(null);
    return vao;
  }

  mesh(part) {
    const gl = this.gl, vao = gl.createVertexArray();
    const points = numbers(part.points, Int16Array), normals = numbers(part.normals, Int8Array);
    const faces = numbers(part.faces, part.wide ? Uint32Array : Uint16Array);
    gl.bindVertexArray(vao);
    [[points, gl.SHORT, false], [normals, gl.BYTE, true]].forEach(([values, kind, unit], k) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, kind, unit, k ? 4 : 8, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    const [s, x, y, z] = part.scale;
    const unpack = new Float32Array([s, 0, 0, 0, 0, s, 0, 0, 0, 0, s, 0, x, y, z, 1]);
    return { vao, count: faces.length, wide: part.wide ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT, unpack };
  }

  // ---- where everything is ----

  // frame k and the share of the way to the next one, at time t
  between(t) {
    const times = this.data.frames.t, last = times.length - 1;
    if (last < 1 || t <= times[0]) return [0, 0];
    if (t >= times[last]) return [last - 1, 1];
    let low = 0, high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle; else high = middle;
    }
    return [low, (t - times[low]) / (times[high] - times[low])];
  }

  bodyPose(b, k, share, of = this.data.frames) {
    const { turn, place } = of, { bodies } = this.data.frames;
    const i = k * bodies + b, j = Math.min(k + 1, turn.length / 4 / bodies - 1) * bodies + b;
    const q = [0, 0, 0, 0], r = [0, 0, 0];
    for (let n = 0; n < 4; n++) q[n] = (1 - share) * turn[4 * i + n] + share * turn[4 * j + n];
    for (let n = 0; n < 3; n++) r[n] = (1 - share) * place[3 * i + n] + share * place[3 * j + n];
    const size = Math.hypot(...q) || 1;
    return M4.pose(q.map((x) => x / size), r);
  }

  setTime(t) {
    const [k, share] = this.between(t);
    this.now = [k, share, t];
    this.poses = Array.from({ length: this.data.frames.bodies }, (_, b) => this.bodyPose(b, k, share));
    if (this.data.ghost) this.ghosts = this.poses.map((_, b) => this.bodyPose(b, k, share, this.data.ghost));
    if (this.options.follow && this.poses.length) {
      const root = [this.poses[0][12], this.poses[0][13], this.data.view.level ? 0 : this.poses[0][14]];
      if (this.followed) this.camera.target = V3.add(this.camera.target, V3.sub(root, this.followed));
      this.followed = root;
    } else this.followed = null;
  }

  reset(yaw = this.data.view.yaw, pitch = this.data.view.pitch) {
    const { target, size } = this.data.view;
    this.camera = { yaw, pitch, far: 1.9, size, target: [...target] };
    const first = this.data.frames.bodies ? this.bodyPose(0, 0, 0) : null;
    this.followed = this.options.follow && first ? [first[12], first[13], this.data.view.level ? 0 : first[14]] : null;
    if (this.now) this.setTime(this.now[2]);
  }

  eye() {
    const { yaw, pitch, target, far, size } = this.camera, d = far * size, c = Math.cos(pitch);
    return [target[0] + d * c * Math.cos(yaw), target[1] + d * c * Math.sin(yaw), target[2] + d * Math.sin(pitch)];
  }

  // ---- drawing ----

  draw(width = this.canvas.width, height = this.canvas.height) {
    const gl = this.gl, eye = this.eye(), d = V3.size(V3.sub(eye, this.camera.target)), fov = 0.6;
    const wide = width / height, tall = wide < 1 ? 2 * Math.atan(Math.tan(fov / 2) / wide) : fov;
    this.projection = M4.multiply(M4.perspective(tall, wide, d / 50, d * 40), M4.lookAt(eye, this.camera.target));
    gl.viewport(0, 0, width, height);
    gl.clearColor(...this.paint.paper, 1);
    gl.clearStencil(0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
    this.drawFloor(eye);
    this.drawBodies(eye);
    if (this.options.forces && this.data.forces) this.drawForces(eye);
    this.drawLines(width, height);
    gl.bindVertexArray(null);
  }

  use(name, values) {
    const gl = this.gl, { made, at } = this.programs[name];
    gl.useProgram(made);
    gl.uniformMatrix4fv(at.camera, false, this.projection);
    for (const [key, value] of Object.entries(values)) {
      if (typeof value === "number") gl.uniform1f(at[key], value);
      else gl[`uniform${value.length}fv`](at[key], value);
    }
    return at;
  }

  eachPart(at, set, chosen = () => true, poses = this.poses) {
    const gl = this.gl;
    for (const part of this.parts.filter(chosen)) {
      const pose = part.body < 0 ? this.data.world : poses[part.body];
      gl.uniformMatrix4fv(at.body, false, M4.multiply(pose, part.unpack));
      if (set) set(part);
      gl.bindVertexArray(part.vao);
      gl.drawElements(gl.TRIANGLES, part.count, part.wide, 0);
    }
  }

  drawFloor(eye) {
    const gl = this.gl, { floor, cell, size } = this.data.view;
    const reach = Math.max(8 * size, 4 * this.camera.far * size);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    gl.depthMask(false);
    const [x, y] = this.camera.target;
    this.use("grid", { centre: [x, y, floor], reach, cell, ink: this.paint.ink, plate: this.paint.plate });
    gl.bindVertexArray(this.square);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    if (eye[2] > floor) {
      gl.enable(gl.STENCIL_TEST);
      gl.stencilFunc(gl.EQUAL, 0, 255);
      gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      this.eachPart(this.use("shadow", { light: LIGHT, floorZ: floor, dark: this.paint.dark }), null, (part) => part.kind !== "ground");
      gl.disable(gl.STENCIL_TEST);
    }
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }

  drawBodies(eye) {
    const gl = this.gl, at = this.use("solid", { eye, light: LIGHT, bright: this.paint.bright, alpha: 1 });
    this.eachPart(at, (part) => {
      const plain = this.data.painted || part.kind !== "link" ? part.rgb : this.paint.plain;
      gl.uniform3fv(at.colour, this.options.modules ? part.module : plain);
    });
    if (!this.ghosts || !this.options.ghost) return;
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    this.use("solid", { alpha: 0.38, colour: this.paint.ghost });
    this.eachPart(at, null, (part) => part.body >= 0, this.ghosts);
    gl.disable(gl.BLEND);
  }

  drawForces(eye) {
    const gl = this.gl, { force, place, count, scale, longest } = this.data.forces, [k, share] = this.now;
    const at = this.use("solid", { eye, light: LIGHT, bright: this.paint.bright, alpha: 1, colour: hexColour("#e0483e") });
    const next = Math.min(k + 1, this.data.frames.t.length - 1);
    const mixed = (values, n) => [0, 1, 2].map((i) => (1 - share) * values[3 * (k * count + n) + i] + share * values[3 * (next * count + n) + i]);
    gl.bindVertexArray(this.arrow.vao);
    for (let n = 0; n < count; n++) {
      const f = mixed(force, n), length = Math.min(longest, scale * V3.size(f));
      if (!(length > 1e-3 * this.data.view.size)) continue;
      const u = V3.unit(f), w = 1 + u[2];
      const q = w > 1e-9 ? [w, -u[1], u[0], 0] : [0, 1, 0, 0], size = Math.hypot(...q);
      const pose = M4.pose(q.map((x) => x / size), mixed(place, n), length);
      gl.uniformMatrix4fv(at.body, false, M4.multiply(pose, this.arrow.unpack));
      gl.drawElements(gl.TRIANGLES, this.arrow.count, this.arrow.wide, 0);
    }
  }

  segments(points, stride, count, ink, width, view) {
    const gl = this.gl;
    this.use("line", { view, width, ink });
    gl.bindVertexArray(this.lines.vao);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.lines.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, points, gl.DYNAMIC_DRAW);
    for (const k of [0, 1]) {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, stride, 12 * k);
      gl.vertexAttribDivisor(k, 1);
    }
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
  }

  drawLines(width, height) {
    const gl = this.gl, view = [width, height], thick = Math.max(2, height / 260);
    const point = this.data.points[this.options.trail];
    if (point) {
      if (this.trailOf !== this.options.trail) {
        const path = this.data.frames.t.map((_, k) => M4.point(this.bodyPose(point.body, k, 0), point.at));
        this.trail = new Float32Array(path.flat());
        this.trailOf = this.options.trail;
      }
      const [k, share] = this.now, here = M4.point(this.poses[point.body], point.at);
      const drawn = new Float32Array(3 * (k + 2));
      drawn.set(this.trail.subarray(0, 3 * (k + 1)));
      drawn.set(here, 3 * (k + 1));
      if (k + share > 0) this.segments(drawn, 12, k + 1, [0.88, 0.33, 0.42, 1], 1.3 * thick, view);
    }
    if (this.options.frames) {
      const size = 0.1 * this.data.view.size;
      gl.disable(gl.DEPTH_TEST);
      for (const [axis, ink] of [[0, [0.86, 0.25, 0.25, 1]], [1, [0.2, 0.62, 0.3, 1]], [2, [0.2, 0.42, 0.9, 1]]]) {
        const points = [this.data.world, ...this.poses].flatMap((pose, n) => {
          const o = [pose[12], pose[13], pose[14]], u = [pose[4 * axis], pose[4 * axis + 1], pose[4 * axis + 2]];
          return [...o, ...V3.add(o, u, n ? size : 1.6 * size)];
        });
        this.segments(new Float32Array(points), 24, points.length / 6, ink, thick, view);
      }
      gl.enable(gl.DEPTH_TEST);
    }
  }

  // ---- the camera ----

  turn(dx, dy) {
    this.camera.yaw -= dx;
    this.camera.pitch = Math.min(1.55, Math.max(-1.2, this.camera.pitch + dy));
  }

  pan(dx, dy) {
    const { yaw, pitch, size, far } = this.camera, k = 0.62 * size * far;
    const right = [-Math.sin(yaw), Math.cos(yaw), 0];
    const up = [-Math.sin(pitch) * Math.cos(yaw), -Math.sin(pitch) * Math.sin(yaw), Math.cos(pitch)];
    this.camera.target = V3.add(V3.add(this.camera.target, right, -dx * k), up, dy * k);
  }

  zoom(factor) {
    this.camera.far = Math.min(30, Math.max(0.03, this.camera.far * factor));
  }
}

function hexColour(text) {
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16) / 255);
}

// the numbers in a text of base 64, little-endian
function numbers(text, Kind) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Kind(bytes.buffer, 0, bytes.length / Kind.BYTES_PER_ELEMENT);
}
