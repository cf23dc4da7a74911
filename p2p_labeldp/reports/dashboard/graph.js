/* Who asked whom, of a study: a ring for each cluster, an arrow for each ask; and the same as a list. */

const IN = new Set(["committed", "asked"]);
const HELD = new Set(["holding", "ready"]);
const LOST = new Set(["abstained", "refused", "unreachable", "late", "invalid", "failed"]);
const lookOf = (step) => IN.has(step) ? "in" : HELD.has(step) ? "held" : step === "reported" || step === "accepted"
  ? "reported" : LOST.has(step) ? "lost" : "";

function groups() {
  const found = new Map();
  for (const [peer, node] of under("peer/")) {
    if (node[0] === null) continue;
    if (!found.has(node[0])) found.set(node[0], []);
    found.get(node[0]).push([peer, node]);
  }
  return [...found].sort((a, b) => a[0] - b[0]);
}

function drawChoice(all) {
  const choice = byId("choice");
  const names = ["all", ...all.map(([cluster]) => String(cluster))];
  if (choice.options.length === names.length) return;
  const before = choice.value || "all";
  choice.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  choice.value = names.includes(before) ? before : "all";
}

function node(x, y, r, look, title) {
  const square = { x: x - .9 * r, y: y - .9 * r, width: 1.8 * r, height: 1.8 * r };
  const parts = [look === "reported" ? draw("rect", { class: `node ${look}`, ...square })  // not by colour alone
    : draw("circle", { class: `node ${look}`, cx: x, cy: y, r })];
  if (look === "lost") {
    const d = r * .6;
    parts.push(draw("path", { class: "cross", d: `M${x - d} ${y - d}L${x + d} ${y + d}M${x - d} ${y + d}L${x + d} ${y - d}` }));
  }
  return title ? draw("g", {}, draw("title", {}, title), ...parts) : draw("g", {}, ...parts);
}

function drawGraph() {
  if (!cells.get("round").graph) return;
  const all = groups();
  drawChoice(all);
  const chosen = byId("choice").value || "all";
  const shown = chosen === "all" ? all : all.filter(([cluster]) => String(cluster) === chosen);
  const alone = shown.length === 1;
  const edge = Math.max(byId("graph").clientWidth, 240);
  const pad = 34;
  const radius = (members) => alone ? Math.min(edge / 2 - pad, 270)
    : Math.min(Math.max(30, members.length * 14 / (2 * Math.PI)), edge / 2 - pad);
  const marker = draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: alone ? 8 : 6,
    markerHeight: alone ? 8 : 6, orient: "auto-start-reverse" }, draw("path", { d: "M0 0L8 4L0 8Z" }));
  const picture = draw("svg", { role: "img" }, draw("defs", {}, marker));
  let [x, y, tall, asked, held] = [0, 0, 0, 0, 0];
  for (const [cluster, members] of shown) {
    const r = radius(members);
    const size = 2 * (r + pad);
    if (x && x + size > edge) [x, y, tall] = [0, y + tall, 0];
    const [cx, cy] = alone ? [edge / 2, r + pad] : [x + size / 2, y + size / 2];
    const at = new Map(members.map(([peer], number) => {
      const angle = 2 * Math.PI * number / members.length - Math.PI / 2;
      return [peer, [cx + r * Math.cos(angle), cy + r * Math.sin(angle)]];
    }));
    const dot = Math.min(alone ? 9 : 5, Math.max(2.5, Math.PI * r / members.length - 1.5));
    for (const [peer, [, , mate, answered]] of members) {
      if (mate === null || !at.has(mate)) continue;
      asked += 1;
      held += answered ? 1 : 0;
      const [[x1, y1], [x2, y2]] = [at.get(peer), at.get(mate)];
      const out = [(x1 - cx) / r, (y1 - cy) / r];
      let d;
      if (peer === mate) {  // a loop outside the ring
        const [ax, ay] = [x1 + out[0] * dot, y1 + out[1] * dot];
        const [tx, ty] = [-out[1] * dot, out[0] * dot];
        const [fx, fy] = [out[0] * 2.6 * dot, out[1] * 2.6 * dot];
        d = `M${ax + tx / 2} ${ay + ty / 2}C${ax + fx + 1.6 * tx} ${ay + fy + 1.6 * ty} ${ax + fx - 1.6 * tx} ${ay + fy - 1.6 * ty} ${ax - tx / 2} ${ay - ty / 2}`;
      } else {
        const [mx, my] = [(x1 + x2) / 2 * .75 + cx * .25, (y1 + y2) / 2 * .75 + cy * .25];
        const reach = Math.hypot(x2 - mx, y2 - my) || 1;
        d = `M${x1} ${y1}Q${mx} ${my} ${x2 - (x2 - mx) / reach * (dot + 2)} ${y2 - (y2 - my) / reach * (dot + 2)}`;
      }
      picture.append(draw("path", { class: answered ? "ask held" : "ask", d, "marker-end": "url(#tip)" }));
    }
    for (const [peer, [, step]] of members) {
      const [nx, ny] = at.get(peer);
      picture.append(node(nx, ny, dot, lookOf(step), `peer ${peer}: ${step}`));
    }
    if (!alone) {
      picture.append(draw("text", { x: cx, y: cy - r - dot - 12, "text-anchor": "middle" }, `cluster ${cluster}`));
    }
    x += size;
    tall = Math.max(tall, size);
  }
  picture.setAttribute("width", edge);
  picture.setAttribute("height", Math.max(y + tall, 60));
  picture.setAttribute("aria-label", `${chosen === "all" ? "All clusters" : `Cluster ${chosen}`}: ${asked} peers have asked a mate, ${held} hold its answer. The list below says whom.`);
  byId("graph").replaceChildren(picture);
  if (byId("list").open) drawList(shown);
}

function drawList(shown) {
  const rows = shown.flatMap(([cluster, members]) => members.map(([peer, [, step, mate, held]]) => make("tr", {},
    make("th", { scope: "row", class: "number" }, String(peer)), make("td", { class: "number" }, String(cluster)),
    make("td", {}, step), make("td", {}, mate === null ? "–" : mate === peer ? "itself" : `peer ${mate}`),
    make("td", {}, held ? "yes" : "no"))));
  const head = ["peer", "cluster", "last step", "asked", "holds the answer"].map((name, number) =>
    make("th", number < 2 ? { scope: "col", class: "number" } : { scope: "col" }, name));
  byId("listed").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
}

function drawLegend() {
  const looks = [["", "started or joined"], ["in", "in a roster"], ["held", "holds an answer"],
    ["reported", "reported"], ["lost", "did not report"]];
  byId("legend").replaceChildren(...looks.map(([look, text]) => make("li", {}, legend(node(14, 9, 6, look)), text)),
    make("li", {}, legend(draw("path", { class: "ask", d: "M2 9H26" })), "asked"),
    make("li", {}, legend(draw("path", { class: "ask held", d: "M2 9H26" })), "asked and answered"));
}
function legend(drawn) { return draw("svg", { viewBox: "0 0 28 18", "aria-hidden": "true" }, drawn); }
