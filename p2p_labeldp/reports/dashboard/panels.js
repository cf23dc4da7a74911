/* Phases, numbers, the time axis, clusters: each drawn anew from the cells. */
const PHASES = [
  ["starting", "Start", "peers start and listen"],
  ["join", "Join", "peers find the others of their cluster by gossip"],
  ["exchange", "Exchange", "each peer asks one mate for its changed label, sealed"],
  ["closing", "Closing", "peers tell each other who could answer"],
  ["report", "Report", "each peer sends its report at a random moment"],
  ["training", "Training", "a model is fitted to the reports, and the guarantee worked out"],
  ["over", "Done", ""],
];
const STEPS = [
  ["started", "started"], ["joined", "joined the round"], ["committed", "accepted their roster"],
  ["asked", "asked a mate"], ["holding", "hold an answer"], ["ready", "ready to report"],
  ["reported", "sent their report"], ["accepted", "report accepted"],
];
const SEEN_BY_LEARNER = [["known", "known by gossip"], ["listed", "in a roster"], ["accepted", "report accepted"]];

const BINS = 96;  // as in board.py

let behind = null; // this page's clock minus the round's, seconds; null before the opening
let announced = "";

/* -- phases and the clock -- */

function since() { return behind === null ? null : clock() - behind; }

function drawPhases() {
  const phase = cells.get("phase");
  const list = byId("phases");
  const current = phase.name === "broken off" ? -1 : PHASES.findIndex(([name]) => name === phase.name);
  if (!list.children.length) {
    for (const [, title] of PHASES) {
      const bar = make("div", { class: "bar", "aria-hidden": "true" });
      list.append(make("li", {}, bar, make("b", {}, title), make("span")));
    }
  }
  PHASES.forEach(([name, title, about], number) => {
    const item = list.children[number];
    const done = number < current || phase.name === "over";
    const end = number >= 1 && number <= 4 ? phase.ends[number - 1] : undefined;
    item.className = done ? "done" : "";
    if (number === current) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    item.lastChild.textContent = end === undefined ? "" : `until ${seconds(end)}`;
    item.title = about;
    if (done) item.firstChild.style.width = "";
  });
  tick();
  const [, title, about] = PHASES[current] || [];
  let text = `${title}: ${about}.`;
  if (phase.name === "over") text = "The round is over. What came of it is below the phases.";
  if (current < 0) text = "The command ended before the round was over.";
  announce(text);
}

function announce(text) {
  if (text !== announced) {
    announced = text;
    say("announce", text);
  }
}

function tick() {
  const phase = cells.get("phase");
  if (!phase) return;
  const number = PHASES.findIndex(([name]) => name === phase.name);
  const now = since();
  const about = number < 0 ? "" : PHASES[number][2];
  if (number >= 1 && number <= 4 && now !== null) {
    const [begin, end] = [number === 1 ? 0 : phase.ends[number - 2], phase.ends[number - 1]];
    const share = Math.min(Math.max((now - begin) / (end - begin), 0), 1);
    byId("phases").children[number].firstChild.style.width = `${(100 * share).toFixed(1)}%`;
    const left = end - now > 0 ? `${seconds(end - now)} left` : "waiting for the last reports";
    say("clock", `${PHASES[number][1]}: ${about}. ${seconds(now)} since the round opened, ${left}.`);
  } else if (phase.name === "broken off") say("clock", "The command ended before the round was over.");
  else if (phase.name === "over") say("clock", epilogue());
  else say("clock", `${PHASES[number][1]}: ${about}.`);
}

function epilogue() {
  const result = cells.get("result");
  const took = result && result.seconds ? ` It took ${seconds(result.seconds)} in all.` : "";
  return `The round is over.${took} This page stays as it is.`;
}

/* -- numbers -- */

function drawRound() {
  const round = cells.get("round");
  say("title", round.title);
  document.title = `${round.title}: a round of p2p-labeldp`;
  const clusters = `${whole(round.clusters)} cluster${round.clusters === 1 ? "" : "s"}`;
  let about = "";
  if (round.kind === "learner") about = "The learner's side of a round; its peers are somewhere else.";
  else if (round.peers) about = `${whole(round.peers)} peers in ${clusters}, on this machine.`;
  if (round.kind === "study") about += " A study: whoever knows the seed knows every coin.";
  say("about", about);
  byId("asks").hidden = !round.graph;
  byId("unshown").hidden = round.graph || (round.kind === "study" && !round.peers);
  say("why-unshown", {
    learner: "The learner does not know, and this page can't show it. Who asked whom would tell whose label a report holds.",
    private: "It is not shown: it would tell whose label a report holds, and the coins of this round are secret.",
    study: "There are too many peers to draw.",
  }[round.kind]);
}

function expected() {
  return cells.get("round").peers || cells.get("steps").listed || cells.get("known") || 0;
}

function drawSteps() {
  const known = cells.get("known") || 0;
  const steps = { ...cells.get("steps"), known };
  const round = cells.get("round");
  const list = byId("steps");
  const shown = round.kind === "learner" ? SEEN_BY_LEARNER
    : STEPS.filter(([name]) => name !== "asked" || round.kind === "study");
  const all = expected();
  if (list.children.length !== shown.length) {
    list.replaceChildren(...shown.map(() => make("li", {}, make("span"),
      make("div", { class: "track", "aria-hidden": "true" }, make("div")), make("span", { class: "count" }))));
  }
  shown.forEach(([name, title], number) => {
    const [label, track, count] = list.children[number].children;
    label.textContent = title;
    track.firstChild.style.width = all ? `${(100 * Math.min(steps[name] / all, 1)).toFixed(1)}%` : "0";
    count.textContent = all ? `${whole(steps[name])} of ${whole(all)}` : whole(steps[name]);
  });
}

function drawOutcomes() {
  const outcomes = Object.entries(cells.get("outcomes"));
  const reasons = Object.entries(cells.get("reasons"));
  const place = byId("outcomes");
  if (!outcomes.length) return void place.replaceChildren(make("p", {}, "None yet."));
  const item = ([name, count]) =>
    make("li", { class: name }, `${whole(count)} ${name.replaceAll("_", " ")}`);
  const parts = [make("ul", { "aria-label": "Outcomes" }, ...outcomes.map(item))];
  if (reasons.length) {
    parts.push(make("h3", {}, "Why not reported"), make("ul", { "aria-label": "Reasons" }, ...reasons.map(item)));
  }
  place.replaceChildren(...parts);
}

function drawResources() {
  const traffic = cells.get("traffic");
  const usage = cells.get("resources");
  const learner = cells.get("round").kind === "learner";
  const over = cells.has("result");
  const rows = [];
  if (usage) {
    if (!learner && !over) rows.push(["Processes", whole(usage.processes)]);
    if (usage.busy !== undefined && !over) rows.push(["Busy cores", `${usage.busy.toFixed(2)} of ${usage.cores}`]);
    rows.push(["CPU time", seconds(usage.cpu_seconds)]);
    if (usage.memory_most && !over) rows.push(["Memory now", bytes(usage.memory_bytes || 0)]);
    if (usage.memory_most) rows.push(["Memory at most", bytes(usage.memory_most)]);
  }
  rows.push([learner ? "Requests of the learner" : "Requests", whole(traffic.requests)],
    ["Bytes of their bodies", bytes(traffic.bytes)], ["Messages refused", whole(traffic.refused)]);
  if (over) rows.push(["Signed messages in all", whole(traffic.messages)]);
  byId("resources").replaceChildren(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function drawResult() {
  const result = cells.get("result");
  byId("result").hidden = !result;
  if (!result) return;
  byId("remarks").replaceChildren(...result.remarks.map((text) => make("p", { class: "note" }, text)));
  byId("guarantee").replaceChildren(...result.guarantee.map(([who, epsilon, delta]) => make("tr", {},
    make("th", { scope: "row" }, who), make("td", { class: "number" }, epsilon),
    make("td", { class: "number" }, delta))));
  byId("guarantee").closest(".scroll").hidden = !result.guarantee.length;
  say("accuracy", result.accuracy === null ? "No model was fitted: there were no reports."
    : `The model labels a share of ${result.accuracy} of the held-out rows rightly.`);
}

/* -- the time axis -- */

function drawTime() {
  const ends = cells.get("phase").ends;
  if (!ends.length) return;
  const learner = cells.get("round").kind === "learner";
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const rows = [["met", "records of their mates that peers hold", percent], ["gossip", learner ? "bytes of the learner's gossip" : "bytes of gossip", bytes],
    ["answers", "answers held", whole], ["reports", "reports accepted", whole]]
    .filter(([name]) => !(learner && (name === "answers" || name === "met")));
  const bins = under("time/");
  const edge = Math.max(byId("time").clientWidth, 240);
  const [left, width, height, gap, top] = [4, edge - 8, 60, 30, 20];
  const bottom = top + rows.length * (height + gap);
  const total = ends[ends.length - 1];
  const x = (at) => left + width * Math.min(at / total, 1.03) / 1.03;
  const picture = draw("svg", { width: edge, height: bottom + 26, role: "img" });
  const said = [];
  rows.forEach(([name, title, unit], number) => {
    const base = top + (number + 1) * (height + gap);
    const share = name === "met";
    const values = share ? held(bins, ends) : bins.map(([bin, cell]) => [bin, cell[name] || 0]);
    const most = share ? 1 : Math.max(...values.map(([, value]) => value), 0);
    const sum = share ? cells.get("convergence") || 0 : values.reduce((all, [, value]) => all + value, 0);
    said.push(`${title}: ${unit(sum)}`);
    picture.append(draw("text", { x: left + 6, y: base - height - 8 }, `${title}: ${unit(sum)}`));
    picture.append(draw("line", { class: "axis", x1: left, x2: left + width, y1: base + .5, y2: base + .5 }));
    for (const [bin, value] of values) {
      if (!value) continue;
      const tall = Math.max(height * value / most, 1.5);
      picture.append(draw("rect", { class: name, x: x(bin * total / BINS) + .5, y: base - tall,
        width: Math.max(width / BINS / 1.03 - 1, 1), height: tall }));
    }
  });
  [0, ...ends].forEach((end, number) => {
    picture.append(draw("line", { class: "axis", x1: x(end), x2: x(end), y1: top, y2: bottom + 4 }));
    const room = number && x(end) - x([0, ...ends][number - 1]) < 36 ? "" : `${end.toFixed(0)} s`;
    picture.append(draw("text", { class: "soft", x: x(end), y: bottom + 20, "text-anchor": number === 0 ? "start" : number === 4 ? "end" : "middle" },
      room));
    if (number < 4 && x(ends[number]) - x(end) > 70) {
      picture.append(draw("text", { class: "soft", x: (x(end) + x(ends[number])) / 2, y: 11, "text-anchor": "middle" },
        PHASES[number + 1][1]));
    }
  });
  const now = since();
  if (now !== null && PHASES.findIndex(([name]) => name === cells.get("phase").name) <= 4) {
    picture.append(draw("line", { class: "now", x1: x(now), x2: x(now), y1: top, y2: bottom + 4 }));
  }
  picture.setAttribute("aria-label", `Seconds since the opening, from 0 to ${total.toFixed(0)}. ${said.join("; ")}.`);
  byId("time").replaceChildren(picture);
}

/* A share stays what it was until it changes: it is drawn up to the end of joining, or to now. */
function held(bins, ends) {
  const shares = new Map(bins.filter(([, cell]) => "met" in cell).map(([bin, cell]) => [bin, cell.met]));
  const until = cells.get("phase").name === "join" ? Math.min(since() ?? 0, ends[0]) : ends[0];
  const last = Math.floor(until / ends[3] * BINS);
  const values = [];
  let share = 0;
  for (let bin = 0; bin <= last; bin += 1) values.push([bin, share = shares.get(bin) ?? share]);
  return values;
}

/* -- clusters -- */

function drawClusters() {
  const learner = cells.get("round").kind === "learner";
  const study = cells.get("round").kind === "study";
  const rows = under("cluster/");
  const columns = [["cluster", (row, id) => String(id)]];
  const count = (name) => (row) => whole(row[name] || 0);
  if (!learner) {
    columns.push(["joined", count("joined")], ["records known in time", (row) => row.gathered === undefined ? "–"
      : row.least === row.most ? whole(row.least) : `${whole(row.least)} to ${whole(row.most)}`]);
  }
  columns.push(["roster", (row) => row.size === undefined ? "–" : whole(row.size)],
    ["label changed", (row) => row.flip === undefined ? "–" : `${(100 * row.flip).toPrecision(3)} %`]);
  if (study) columns.push(["asked", count("asked")]);
  if (!learner) columns.push(["hold an answer", count("holding")]);
  columns.push(["needed", (row) => row.needed === undefined ? "–" : whole(row.needed)], ["reports", count("accepted")]);
  const head = make("tr", {}, ...columns.map(([name]) => make("th", { scope: "col", class: "number" }, name)));
  const body = rows.map(([id, row]) => make("tr", {}, ...columns.map(([, value], number) =>
    make(number ? "td" : "th", number ? { class: "number" } : { scope: "row", class: "number" }, value(row, id)))));
  byId("clusters").replaceChildren(rows.length
    ? make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)) : make("p", {}, "None yet."));
  const gathered = rows.reduce((sum, [, row]) => sum + (row.gathered || 0), 0);
  const knowing = rows.reduce((sum, [, row]) => sum + (row.whole || 0), 0);
  const signed = rows.some(([, row]) => row.size !== undefined);
  byId("convergence").hidden = learner;
  say("convergence", gathered && signed
    ? `Gossip had converged for ${whole(knowing)} of ${whole(gathered)} peers when the rosters were signed: they held a record of every member.`
    : `Peers hold ${(100 * (cells.get("convergence") || 0)).toFixed(1)} % of their mates' records.`);
}
