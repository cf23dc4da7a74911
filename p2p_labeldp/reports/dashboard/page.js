/* Cells come as server-sent events; what changed is drawn anew. */
let dirty = new Set();
let drawing = false;

const DRAWN = [
  [drawRound, ["round"]],
  [drawResult, ["result"]],
  [drawPhases, ["phase"]],
  [drawSteps, ["steps", "round", "known"]],
  [drawOutcomes, ["outcomes", "reasons"]],
  [drawResources, ["traffic", "resources", "round", "result"]],
  [drawTime, ["time", "phase", "round", "convergence"]],
  [drawClusters, ["cluster", "round", "convergence"]],
  [drawGraph, ["peer", "round"]],
];

function render() {
  drawing = false;
  const changed = dirty;
  dirty = new Set();
  for (const [drawIt, kinds] of DRAWN) if (kinds.some((kind) => changed.has(kind))) drawIt();
}
function redraw(...kinds) {
  kinds.forEach((kind) => dirty.add(kind));
  if (!drawing) {
    drawing = true;
    setTimeout(render, 0);  // not a frame's callback: a page in the background has no frames, and is read aloud
  }
}

function link(state, text) {
  byId("link").dataset.state = state;
  say("link", text);
}

const events = new EventSource("events");
events.addEventListener("state", (event) => {
  const changes = JSON.parse(event.data);
  if (changes.fresh) cells.clear();
  for (const [key, value] of Object.entries(changes.cells)) cells.set(key, value);
  behind = changes.now === null ? null : clock() - changes.now;
  const kinds = Object.keys(changes.cells).map((key) => key.split("/")[0]);
  redraw(...kinds, ...(changes.fresh ? ["round", "result", "phase", "cluster", "peer", "time"] : []));
  link("live", "live");
});
events.addEventListener("end", () => {
  events.close();
  link("ended", "ended");
});
events.addEventListener("error", () => {
  if (byId("link").dataset.state === "live") announce("The connection was lost; this page tries to get it back.");
  link("lost", events.readyState === EventSource.CLOSED ? "not connected" : "connection lost, trying again");
  if (events.readyState === EventSource.CLOSED) announce("The connection was lost. Reload the page to try again.");
});
byId("choice").addEventListener("change", () => redraw("peer"));
byId("list").addEventListener("toggle", () => redraw("peer"));
drawLegend();
addEventListener("resize", () => redraw("time", "peer"));
const slowly = matchMedia("(prefers-reduced-motion: reduce)").matches;
setInterval(() => {
  const phase = cells.get("phase");
  if (!phase || byId("link").dataset.state !== "live" || since() === null) return;
  tick();
  if (cells.get("phase").name !== "over") redraw("time");
}, slowly ? 1000 : 250);
